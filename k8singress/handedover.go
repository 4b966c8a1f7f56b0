package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/front"
)

// The reasons why a connection or request is handled by net/http or by Caddy's HTTP server instead of the controller's
// own HTTP server. docs/metrics.md describes them.
const (
	reasonH2C         = "h2c"
	reasonChallenge   = "acme_challenge"
	reasonLogs        = "logs"
	reasonErrorRoutes = "error_routes"
	reasonStrictSNI   = "strict_sni_host"
	reasonRoutes      = "routes"
)

// handOvers counts the connections and requests that net/http or Caddy's HTTP server handle instead of the controller's
// own HTTP server. The counter is shared by all configurations.
type handOvers struct{ counter *prometheus.CounterVec }

var handedOver = &handOvers{prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "k8singress_handed_over_total",
	Help: "The number of connections (reasons h2c and protocols) and requests (other reasons) that Go's or Caddy's " +
		"HTTP server handled instead of the controller's own server.",
}, []string{"reason"})}

// collectors returns the metric. It creates a counter for each reason why a connection or request is handed over, so
// that all time series exist before the first request.
func (h *handOvers) collectors() []prometheus.Collector {
	for _, reason := range []string{
		reasonH2C, front.WithoutHTTP1, reasonChallenge, reasonLogs, reasonErrorRoutes, reasonStrictSNI, reasonRoutes,
	} {
		h.counter.WithLabelValues(reason)
	}
	return []prometheus.Collector{h.counter}
}

// count increments the counter of handed-over connections and requests for a reason.
func (h *handOvers) count(reason string) { h.counter.WithLabelValues(reason).Inc() }
