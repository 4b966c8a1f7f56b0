package exchange

import (
	"cmp"
	"net/http"
	"time"
)

// Next starts another attempt and returns the address of its endpoint. It prefers endpoints that this request has not
// tried yet. It returns false if the backend has no endpoint. An earlier attempt without a call of Done counts as
// failed. If the choice comes with a session cookie, the response sets it.
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
	x.choice, x.start, x.open, x.measured = choice, time.Now(), true, false
	choice.Begin()
	x.setCookie()
	return choice.Endpoint.Address(), true
}

// Done ends the attempt that the last Next started, and tells the load balancer whether its endpoint failed. Only the
// first call after a Next has an effect. If the client is the reason why there is no response, End is called instead.
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

// ResponseStarted records that the head of the response has arrived, and how long the endpoint took. since is the start
// of the measurement; zero means the time of Next. The time for the rest of the response is not measured, because it
// depends on the client and the requested content.
func (x *Exchange) ResponseStarted(since time.Time) {
	if !x.open || x.measured {
		return
	}
	if since.IsZero() {
		since = x.start
	}
	x.measured = true
	x.choice.Measure(time.Since(since))
}

// Listed returns a function that reports whether the endpoint of the last Next is still an endpoint of its backend. Any
// goroutine may call that function.
func (x *Exchange) Listed() func() bool { return x.choice.Endpoint.Listed }

// Attempt describes a finished attempt to send the request to an endpoint.
type Attempt struct {
	Address string
	// Status is the status of the response, or the status of the error.
	Status int
	Took   time.Duration
}

// Attempts returns the finished attempts in order.
func (x *Exchange) Attempts() []Attempt { return x.attempts }

// recordAttempt records the result of the last attempt.
func (x *Exchange) recordAttempt() {
	if x.attempts == nil {
		x.attempts = x.firstAttempts[:0]
	}
	x.attempts = append(x.attempts, Attempt{x.choice.Endpoint.Address(),
		cmp.Or(x.responseStatus, http.StatusBadGateway),
		time.Since(x.start)})
	x.responseStatus = 0
}

// End ends the attempt without a judgement about its endpoint.
func (x *Exchange) End() {
	if x.open {
		x.open = false
		x.recordAttempt()
		x.choice.End()
	}
}

// Conclude ends the last attempt, if Done was not called, and judges its endpoint by the error of the request. If the
// client has gone, or the request itself is at fault, it does not judge the endpoint.
func (x *Exchange) Conclude(err error) {
	switch {
	case err == nil:
		x.Done(false)
	case x.Context().Err() != nil:
		x.End()
	default:
		if status := StatusOf(err); status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
			x.responseStatus = cmp.Or(x.responseStatus, status)
			x.Done(true)
		}
		x.End()
	}
}
