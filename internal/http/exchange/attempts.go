package exchange

import (
	"cmp"
	"net/http"
	"time"
)

// Next starts another attempt to forward the request, and returns the address of the chosen endpoint. It prefers
// endpoints that this request has not tried yet. It returns false if the backend has no endpoint. If Done was not
// called for the previous attempt, that attempt counts as failed. If the load balancer assigns a session cookie, Next
// adds it to the response.
func (x *Exchange) Next() (address string, ok bool) {
	x.Done(true)
	if x.Backend == nil {
		return "", false
	}
	choice, ok := x.Backend.Pick(x, x.tried)
	if !ok {
		return "", false
	}
	if x.tried == nil {
		x.tried = x.first[:0]
	}
	x.tried = append(x.tried, choice.Endpoint)
	x.choice, x.start, x.open, x.measured, x.latency = choice, time.Now(), true, false, 0
	x.firstByte, x.connect = time.Time{}, 0
	choice.Begin()
	x.setCookie()
	return choice.Endpoint.Address(), true
}

// Done ends the attempt that Next started last, and reports to the load balancer whether the endpoint failed. Further
// calls have no effect until Next is called again. If the client caused the failure, End must be called instead.
func (x *Exchange) Done(failed bool) {
	if !x.open {
		return
	}
	if x.measured {
		x.choice.Judge(failed)
	} else {
		x.choice.Observe(time.Since(x.start), failed)
	}
	x.End()
}

// SetResponseStatus records the status of the endpoint's response.
func (x *Exchange) SetResponseStatus(status int) { x.responseStatus = status }

// ResponseStarted records that the head of the response has arrived, and reports the endpoint's response time to the
// load balancer. The response time starts at the time since, or at the last call of Next if since is zero. The time for
// the body is not included, because it depends on the client and the requested content.
func (x *Exchange) ResponseStarted(since time.Time) {
	if !x.open || x.measured {
		return
	}
	if since.IsZero() {
		since = x.start
	}
	x.measured, x.latency = true, time.Since(since)
	x.firstByte = since.Add(x.latency)
	x.choice.Measure(x.latency)
}

// Listed returns a function that reports whether the endpoint chosen by the last call of Next still belongs to its
// backend. The function is safe for concurrent use.
func (x *Exchange) Listed() func() bool { return x.choice.Endpoint.Listed }

// Attempt describes a finished attempt to send the request to an endpoint.
type Attempt struct {
	Address string
	// Status is the status of the endpoint's response. If there was no response, it is the status of the error.
	Status int
	// Latency is how long the endpoint took to send the head of its response, or 0 if there was no response.
	Latency time.Duration
	Took    time.Duration
	// First is true for the first attempt of a route or an error page. If it is false, the attempt is a retry.
	First bool
}

// Attempts returns the finished attempts of all routes and error pages of the request, the first attempt first.
func (x *Exchange) Attempts() []Attempt { return x.attempts }

// attempt returns the data of the current attempt.
func (x *Exchange) attempt() Attempt {
	return Attempt{Address: x.choice.Endpoint.Address(), Status: cmp.Or(x.responseStatus, http.StatusBadGateway),
		Latency: x.latency, Took: time.Since(x.start), First: len(x.tried) == 1}
}

// recordAttempt appends the attempt that is ending to x.attempts.
func (x *Exchange) recordAttempt() {
	if x.attempts == nil {
		x.attempts = x.firstAttempts[:0]
	}
	x.attempts = append(x.attempts, x.attempt())
	x.responseStatus = 0
}

// End ends the current attempt without reporting success or failure of the endpoint to the load balancer.
func (x *Exchange) End() {
	if x.open {
		x.open = false
		x.recordAttempt()
		x.choice.End()
	}
}

// Conclude ends the last attempt, if Done was not called. err is the error of the request, or nil if the request
// succeeded. Conclude tells the load balancer whether the endpoint has failed, unless the client has disconnected or
// the request itself caused the error.
func (x *Exchange) Conclude(err error) {
	switch {
	case !x.open:
		// A request without an attempt, such as a request that gets another route, needs no context.
	case err == nil:
		x.Done(false)
	case x.Context().Err() != nil:
		x.End()
	default:
		if status := StatusOf(err); status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
			x.Failed(status)
		}
		x.End()
	}
}

// Failed ends the current attempt as a failure of the endpoint. status is the status of the error: 504 after a
// timeout, and 502 in general. The access log shows status unless the endpoint has sent one.
func (x *Exchange) Failed(status int) {
	if x.open {
		x.responseStatus = cmp.Or(x.responseStatus, status)
		x.Done(true)
	}
}
