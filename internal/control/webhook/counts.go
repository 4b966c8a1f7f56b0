package webhook

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Last describes the last completed review.
type Last struct {
	// Ingresses is the number of Ingresses that the Ingress was reviewed against.
	Ingresses int
	// Reviewed is the time for the decision alone. Total also includes reading and decoding the request.
	Reviewed, Total time.Duration
}

// Counts are the numbers of reviews since the process started, and the last of them.
type Counts struct {
	// Allowed and Refused count decisions. Failed counts requests that got an error instead of a decision.
	Allowed, Refused, Failed uint64
	// Last is the zero value before the first review.
	Last Last
}

// counters counts reviews. It is safe for concurrent use.
type counters struct {
	allowed, refused, errors atomic.Uint64
	last                     atomic.Pointer[Last]
	results                  *prometheus.CounterVec
}

// resultOf maps the status of an error to the label of the metric.
var resultOf = map[int]string{
	413: "too_large", 429: "too_many", 503: noAnswer, 500: noAnswer,
}

// noAnswer is the result of a review that failed although the request was valid.
const noAnswer = "no_answer"

func newCounters() *counters {
	c := &counters{results: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_admission_reviews_total",
		Help: "The number of requests to the admission webhook, by result: the Ingress was allowed or refused, the " +
			"request was invalid or too large, there were too many at a time, or the webhook could not answer.",
	}, []string{"result"})}
	for _, result := range []string{"allowed", "refused", "invalid", "too_large", "too_many", noAnswer} {
		c.results.WithLabelValues(result)
	}
	return c
}

func (c *counters) reviewed(allowed bool, last Last) {
	c.last.Store(&last)
	if allowed {
		c.allowed.Add(1)
		c.results.WithLabelValues("allowed").Inc()
		return
	}
	c.refused.Add(1)
	c.results.WithLabelValues("refused").Inc()
}

// failed counts an error with the given status, and returns the label for it.
func (c *counters) failed(status int) (result string) {
	c.errors.Add(1)
	result, ok := resultOf[status]
	if !ok {
		result = "invalid"
	}
	c.results.WithLabelValues(result).Inc()
	return result
}

// Counts returns the numbers of reviews.
func (h *Handler) Counts() Counts {
	c := Counts{Allowed: h.counts.allowed.Load(), Refused: h.counts.refused.Load(), Failed: h.counts.errors.Load()}
	if last := h.counts.last.Load(); last != nil {
		c.Last = *last
	}
	return c
}

// Collector returns the metric with the number of reviews.
func (h *Handler) Collector() prometheus.Collector { return h.counts.results }
