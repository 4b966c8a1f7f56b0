package l4app

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/ir"
)

// counted is the traffic of one port as a collector.
type counted struct{ *traffic }

func (c counted) Describe(to chan<- *prometheus.Desc) { c.describe(to) }

func (c counted) Collect(to chan<- prometheus.Metric) { c.collect("53", to) }

func TestTraffic(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	conn := dial(t, r)
	for range 3 {
		exchange(t, conn, []byte("x"), "a:x")
	}
	w.endpoints(r)
	send(t, conn, "lost")
	traffic := &w.ports.open[portName(r)].traffic
	await(t, "the loss", func() bool { return traffic.lost[noEndpointToAsk].Load() == 1 })
	got := map[string]float64{}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(counted{traffic})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.Metric {
			name := family.GetName()
			for _, label := range m.Label {
				name += " " + label.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"k8singress_stream_datagrams_dropped_total 53 client_busy":   0,
		"k8singress_stream_datagrams_dropped_total 53 endpoint_busy": 0,
		"k8singress_stream_datagrams_dropped_total 53 max_sessions":  0,
		"k8singress_stream_datagrams_dropped_total 53 no_endpoint":   1,
		"k8singress_stream_datagrams_dropped_total 53 not_sendable":  0,
		"k8singress_stream_datagrams_total in 53":                    3,
		"k8singress_stream_datagrams_total out 53":                   3,
		"k8singress_stream_sessions_active 53":                       1,
		"k8singress_stream_sessions_evicted_total 53":                0,
		"k8singress_stream_sessions_total 53":                        1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
