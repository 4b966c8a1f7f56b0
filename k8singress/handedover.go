package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/front"
)

// The reasons for which a connection or a request is left to net/http or to Caddy. docs/metrics.md says what each of them means.
const (
	reasonH2C         = "h2c"
	reasonChallenge   = "acme_challenge"
	reasonLogs        = "logs"
	reasonErrorRoutes = "error_routes"
	reasonStrictSNI   = "strict_sni_host"
	reasonRoutes      = "routes"
)

// handOvers count what our own servers do not answer by themselves, of all configurations.
type handOvers struct{ counter *prometheus.CounterVec }

var handedOver = &handOvers{prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "k8singress_handed_over_total",
	Help: "How many connections (h2c, protocols) and requests (the other reasons) were left to Go's or to Caddy's HTTP server.",
}, []string{"reason"})}

// collectors begin with all reasons, so that the counters are there before the first request.
func (h *handOvers) collectors() []prometheus.Collector {
	for _, reason := range []string{
		reasonH2C, front.WithoutHTTP1, reasonChallenge, reasonLogs, reasonErrorRoutes, reasonStrictSNI, reasonRoutes,
	} {
		h.counter.WithLabelValues(reason)
	}
	return []prometheus.Collector{h.counter}
}

// note counts one connection, or one request.
func (h *handOvers) note(reason string) { h.counter.WithLabelValues(reason).Inc() }
