package exchange

// limited says which limits have been applied to a request. As in nginx, a limit of request rates applies once, and a
// request that was rejected because of concurrent requests meets no limit of concurrent requests again. Otherwise a
// client beyond a limit would not get the error page if the same limit applies to the page.
type limited struct {
	// rateOn is 1 more than the value of Reroutes when a limit of request rates applied. It is 0 if none has applied.
	rateOn uint8
	// crowded is true if the request was rejected because of concurrent requests.
	crowded bool
}

// MeetsRateLimits reports whether limits of request rates apply to the request on its route.
func (x *Exchange) MeetsRateLimits() bool {
	return x.limited.rateOn == 0 || x.limited.rateOn == x.Reroutes+1
}

// UseRateLimit must be called when a limit of request rates applies to the request.
func (x *Exchange) UseRateLimit() { x.limited.rateOn = x.Reroutes + 1 }

// MeetsConnectionLimits reports whether limits of concurrent requests apply to the request on its route.
func (x *Exchange) MeetsConnectionLimits() bool { return !x.limited.crowded }

// RejectCrowded rejects the request, because its client has too many concurrent requests. See Reject.
func (x *Exchange) RejectCrowded(why *Failure) (responded bool, err error) {
	x.limited.crowded = true
	return x.Reject(why)
}
