package exchange

import (
	"time"

	"github.com/k8singress/k8singress/internal/http/meter"
)

// Measure returns what is counted about a request that began and ended at these times. It must be called after Close.
func (x *Exchange) Measure(began, ended time.Time) meter.Answer {
	a := meter.Answer{
		Status: x.Status, Took: ended.Sub(began), Retries: x.retries(), Received: x.Received, Sent: x.Sent(),
	}
	if a.FirstByte = a.Took; !x.firstByte.IsZero() {
		a.FirstByte = x.firstByte.Sub(began)
	}
	return a
}

// Sent returns the number of bytes that were sent to the client after the head of the response: the body, or after an
// upgrade the bytes of the other protocol. It is 0 if the request could not be parsed.
func (x *Exchange) Sent() int64 {
	if x.Writer == nil {
		return 0
	}
	return x.Writer.Sent() + x.Relayed
}

// retries returns the number of attempts of each route and error page after its first one.
func (x *Exchange) retries() (n int) {
	for i := range x.attempts {
		if !x.attempts[i].First {
			n++
		}
	}
	return n
}

// Describe returns more details of the request whose Answer is a.
func (x *Exchange) Describe(a *meter.Answer) meter.Details {
	d := meter.Details{Status: a.Status, Took: a.Took, Sent: a.Sent}
	if x.Request != nil {
		d.Method, d.Received = x.Method, x.headSize()+x.Received
	}
	if n := len(x.attempts); n > 0 {
		last := &x.attempts[n-1]
		d.HasAttempt, d.Connect, d.Header, d.Response = true, x.connect, last.Latency, last.Took
	}
	return d
}

// Connected records how long it took to open a connection to the endpoint in the current attempt.
func (x *Exchange) Connected(took time.Duration) { x.connect = took }

// Unconnected records that no connection to the endpoint could be opened in the current attempt.
func (x *Exchange) Unconnected() { x.connect = -1 }
