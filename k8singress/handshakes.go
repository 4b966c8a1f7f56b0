package k8singress

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/http/front"
)

// failedHandshakes counts failed TLS handshakes over TCP. The counter is shared by all configurations.
var failedHandshakes = func() *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_tls_handshake_failures_total",
		Help: "The number of failed TLS handshakes over TCP, by reason: the client took too long (timeout), closed " +
			"the connection (closed), did not send TLS (not_tls), or sent an alert (client_alert); or the server " +
			"rejected the handshake (refused).",
	}, []string{"reason"})
	for _, reason := range front.HandshakeReasons {
		// Create the counter for each reason, so that it exists before the first failure.
		counter.WithLabelValues(reason)
	}
	return counter
}()

func countHandshake(reason string) { failedHandshakes.WithLabelValues(reason).Inc() }
