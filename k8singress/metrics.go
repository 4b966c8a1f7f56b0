package k8singress

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics counts the requests to the controller. It is shared by all configurations.
type requestMetrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	// byCode caches the counter for each status, because looking up a counter by its label takes longer than
	// incrementing it.
	byCode [600]atomic.Pointer[prometheus.Counter]
	// begun and ended are the numbers of requests that have started and ended. They are counted in the same way as on
	// nginx's status page.
	begun, ended atomic.Int64
}

var requests = &requestMetrics{
	requests: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_http_requests_total",
		Help: "The number of HTTP requests, by response status. 0 means that the connection ended without a response.",
	}, []string{"code"}),
	duration: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "k8singress_http_request_duration_seconds",
		Help: "The duration of HTTP requests in seconds, from the end of the request header to the end of the " +
			"response.",
		Buckets: prometheus.DefBuckets,
	}),
}

// collectors returns the metrics. It creates the counter for status 200, so that the metric exists before the first
// request.
func (m *requestMetrics) collectors() []prometheus.Collector {
	m.requests.WithLabelValues(strconv.Itoa(http.StatusOK))
	return []prometheus.Collector{m.requests, m.duration}
}

// record counts a request with its response status and duration.
func (m *requestMetrics) record(status int, took time.Duration) {
	if status < 0 || status >= len(m.byCode) {
		status = 0
	}
	counter := m.byCode[status].Load()
	if counter == nil {
		found := m.requests.WithLabelValues(strconv.Itoa(status))
		counter = &found
		m.byCode[status].Store(counter)
	}
	(*counter).Inc()
	m.duration.Observe(took.Seconds())
}
