package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/front"
)

// failedHandshakes counts failed TLS handshakes over TCP, for all configurations.
var failedHandshakes = func() *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_tls_handshake_failures_total",
		Help: "How many TLS handshakes over TCP failed, by reason: the client took too long, closed the connection, " +
			"sent no TLS, or sent an alert; or the server refused it.",
	}, []string{"reason"})
	for _, reason := range front.HandshakeReasons {
		// This creates the counters before the first failure.
		counter.WithLabelValues(reason)
	}
	return counter
}()

func noteHandshake(reason string) { failedHandshakes.WithLabelValues(reason).Inc() }
