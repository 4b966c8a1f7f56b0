package issuance

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of a Manager. They are registered again for each new Caddy configuration, and keep their
// values.
type metrics struct {
	orders  *prometheus.CounterVec
	refused *prometheus.CounterVec
	waiting prometheus.GaugeFunc
}

// Results of an order.
const (
	issuedResult  = "issued"
	renewedResult = "renewed"
	failedResult  = "failed"
)

// The values of the metric label that says why a certificate was not ordered.
const (
	overBudget     = "new_hosts_per_day"
	leadsElsewhere = "check_host_dns"
	// abortedByHandler is the name of the event whose handlers can abort an order.
	abortedByHandler = "cert_obtaining"
)

func newMetrics(m *Manager) *metrics {
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_acme_orders_total",
		Help: "The number of completed certificate orders, by result.",
	}, []string{"result"})
	for _, result := range []string{issuedResult, renewedResult, failedResult} {
		orders.WithLabelValues(result)
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_acme_refused_total",
		Help: "The number of certificate orders that were not made, by reason: the namespace has reached its limit " +
			"of new names per day (new_hosts_per_day), the name does not resolve to this controller " +
			"(check_host_dns), or an event handler has aborted the order (cert_obtaining).",
	}, []string{"reason"})
	for _, reason := range []string{overBudget, leadsElsewhere, abortedByHandler} {
		refused.WithLabelValues(reason)
	}
	return &metrics{orders: orders, refused: refused, waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "k8singress_acme_waiting",
		Help: "The number of hosts that wait for a certificate from an issuer.",
	}, m.waiting)}
}

// waiting returns the number of hosts without a certificate. It only looks at the hosts in m.problematic, which
// contains all of them.
func (m *Manager) waiting() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := 0
	for h := range m.problematic.Values() {
		if h.issued == nil {
			count++
		}
	}
	return float64(count)
}

// Collectors returns the metrics of the manager, for registration in the metrics registry of a Caddy configuration.
func (m *Manager) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.metrics.orders, m.metrics.refused, m.metrics.waiting}
}
