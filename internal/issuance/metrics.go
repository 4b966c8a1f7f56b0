package issuance

import "github.com/prometheus/client_golang/prometheus"

// metrics of a manager. They outlive Caddy's configurations, and are registered with each.
type metrics struct {
	orders  *prometheus.CounterVec
	refused *prometheus.CounterVec
	waiting prometheus.GaugeFunc
}

// How an attempt ends.
const (
	issuedResult  = "issued"
	renewedResult = "renewed"
	failedResult  = "failed"
)

// Why an order is not made.
const (
	overBudget     = "new_hosts_per_day"
	leadsElsewhere = "check_host_dns"
)

func newMetrics(m *Manager) *metrics {
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_acme_orders_total",
		Help: "How many orders of certificates ended, by result.",
	}, []string{"result"})
	for _, result := range []string{issuedResult, renewedResult, failedResult} {
		orders.WithLabelValues(result)
	}
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "k8singress_acme_refused_total",
		Help: "How many orders were not made, by reason: the namespace has asked for as many new names as it may in a day, or the name does " +
			"not lead to this controller.",
	}, []string{"reason"})
	for _, reason := range []string{overBudget, leadsElsewhere} {
		refused.WithLabelValues(reason)
	}
	return &metrics{orders: orders, refused: refused, waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "k8singress_acme_waiting",
		Help: "How many hosts wait for a certificate from an issuer.",
	}, m.waiting)}
}

// waiting counts the hosts without a certificate, all of which are problematic.
func (m *Manager) waiting() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := 0
	for _, h := range m.problematic {
		if h.issued == nil {
			count++
		}
	}
	return float64(count)
}

// Collectors returns the metrics, to be registered with the registry of a Caddy configuration.
func (m *Manager) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.metrics.orders, m.metrics.refused, m.metrics.waiting}
}
