package exchange

import (
	"time"

	"github.com/k8singress/k8singress/internal/http/meter"
)

// Measure returns what is counted about a request that began and ended at these times. It must be called after Close.
func (x *Exchange) Measure(began, ended time.Time) meter.Answer {
	a := meter.Answer{
		Status: x.Status, Took: ended.Sub(began), Retries: max(len(x.attempts)-1, 0), Received: x.Received,
		Sent: x.Relayed,
	}
	if a.FirstByte = a.Took; !x.firstByte.IsZero() {
		a.FirstByte = x.firstByte.Sub(began)
	}
	if x.Writer != nil {
		a.Sent += x.Writer.Sent()
	}
	return a
}
