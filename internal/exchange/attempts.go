package exchange

import (
	"cmp"
	"net/http"
	"time"
)

// Next begins another attempt, and returns the address of its endpoint: one that this request has not tried, while there is
// one. It returns false if the backend has none. An earlier attempt that is not Done counts as failed. If the choice comes
// with a session cookie, the answer sets it.
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
	x.choice, x.began, x.open, x.measured = choice, time.Now(), true, false
	choice.Begin()
	x.setCookie()
	return choice.Endpoint.Address(), true
}

// Done says that the attempt of the last Next is over, and whether its endpoint failed. Only the first call after a Next
// counts. It is not called where the client is the reason that there is no answer: see End.
func (x *Exchange) Done(failed bool) {
	if !x.open {
		return
	}
	if x.measured {
		x.choice.Judge(failed)
	} else {
		x.choice.Observe(time.Since(x.began), failed)
	}
	x.End()
}

// AnsweredWith says which status the endpoint has answered with.
func (x *Exchange) AnsweredWith(status int) { x.answered = status }

// Answered says that the head of the answer is there, for which the endpoint has been waited for since a time, zero being since
// Next. How long the rest takes says more of the client, or of what it has asked for.
func (x *Exchange) Answered(since time.Time) {
	if !x.open || x.measured {
		return
	}
	if since.IsZero() {
		since = x.began
	}
	x.measured = true
	x.choice.Measure(time.Since(since))
}

// Listed returns what tells, from any goroutine, whether the endpoint of the last Next is still one of its backend.
func (x *Exchange) Listed() func() bool { return x.choice.Endpoint.Listed }

// Attempt is what came of asking one endpoint.
type Attempt struct {
	Address string
	// Status is that of its answer, or the one of the error.
	Status int
	Took   time.Duration
}

// Attempts returns those that are over, in their order.
func (x *Exchange) Attempts() []Attempt { return x.ended }

// note keeps what came of the last attempt.
func (x *Exchange) note() {
	if x.ended == nil {
		x.ended = x.firstEnded[:0]
	}
	x.ended = append(x.ended, Attempt{x.choice.Endpoint.Address(), cmp.Or(x.answered, http.StatusBadGateway), time.Since(x.began)})
	x.answered = 0
}

// End takes the attempt off those that are under way, without a word on its endpoint.
func (x *Exchange) End() {
	if x.open {
		x.open = false
		x.note()
		x.choice.End()
	}
}

// Conclude judges the last attempt by the error that the request ended with, where Done has not. When the client has gone, it says
// nothing, and what is wrong with the request says nothing of the endpoint.
func (x *Exchange) Conclude(err error) {
	switch {
	case err == nil:
		x.Done(false)
	case x.Context().Err() != nil:
		x.End()
	default:
		if status := StatusOf(err); status == http.StatusBadGateway || status == http.StatusGatewayTimeout {
			x.answered = cmp.Or(x.answered, status)
			x.Done(true)
		}
		x.End()
	}
}
