package l4app

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

func trafficOf(w *world, r *ir.StreamRoute) *udp.Traffic {
	return &w.ports.open[portName(r)].account.traffic
}

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
	traffic := trafficOf(w, r)
	await(t, "the loss", func() bool { return traffic.Lost[udp.NoEndpoint].Load() == 1 })
	on := strconv.Itoa(int(r.Port)) + " udp"
	want := map[string]float64{
		"connections_total " + on: 1, "connections_active " + on: 1,
		"bytes_total in " + on: 3, "bytes_total out " + on: 9,
		"datagrams_total in " + on: 3, "datagrams_total out " + on: 3, "sessions_evicted_total " + on: 0,
		"failures_total " + on + " internal": 0,
	}
	for why := range udp.Losses {
		want["datagrams_dropped_total "+on+" "+why.String()] = 0
	}
	want["datagrams_dropped_total "+on+" no_endpoint"] = 1
	if diff := cmp.Diff(want, w.metrics()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
