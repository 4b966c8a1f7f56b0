package l4app

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/k8singress/k8singress/internal/ir"
)

// loss is why a datagram was not passed on.
type loss int

const (
	// noEndpointToAsk is one for which there was no endpoint.
	noEndpointToAsk loss = iota
	// tooManySessions is one of a new client where there are as many as there may be.
	tooManySessions
	// endpointRefused is one that was passed on, and that the endpoint's system has sent back.
	endpointRefused
	// endpointBusy and clientBusy are those for which there was no room on the way.
	endpointBusy
	clientBusy
	// notSendable is one that the system refused to send.
	notSendable
	// portClosing is one of a new client where the port is about to go.
	portClosing
	losses
)

// lossReasons are the losses as the metrics have them.
var lossReasons = [losses]string{"no_endpoint", "max_sessions", "endpoint_refused", "endpoint_busy", "client_busy", "not_sendable", "port_closing"}

// traffic is what is counted of the datagrams of a port. It is counted by batches.
type traffic struct {
	// sessions are those that there are, opened all that there ever were, and evicted those that had to make room.
	sessions, opened, evicted atomic.Int64
	// in is what went to endpoints, and out what went to clients.
	in, out tally
	lost    [losses]atomic.Uint64
}

// load is what one message carries, or several.
type load struct{ datagrams, bytes int }

// loadOf is the load of bytes that are datagrams of a size each; the last one may be smaller.
func loadOf(bytes, size int) load {
	if bytes <= size {
		return load{1, bytes}
	}
	return load{(bytes + size - 1) / size, bytes}
}

func (l *load) add(other load) {
	l.datagrams += other.datagrams
	l.bytes += other.bytes
}

// tally counts datagrams and their bytes.
type tally struct{ datagrams, bytes atomic.Uint64 }

func (t *tally) add(l load) {
	t.datagrams.Add(uint64(l.datagrams))
	t.bytes.Add(uint64(l.bytes))
}

func (t *traffic) lose(why loss, n int) { t.lost[why].Add(uint64(n)) }

var (
	datagramsTotal = describe("datagrams_total",
		"How many datagrams have gone from clients to endpoints (direction in), and back (direction out).", "direction")
	datagramsDropped = describe("datagrams_dropped_total", "How many datagrams did not arrive, as far as that is known, by reason.", "reason")
	sessionsEvicted  = describe("sessions_evicted_total", "How many clients of a UDP port had to make room for others.")
)

// collect is Collect of a prometheus.Collector, for the traffic of one port.
func (t *traffic) collect(port string, to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, value, append([]string{port, string(ir.UDP)}, labels...)...)
	}
	send(connectionsTotal, prometheus.CounterValue, float64(t.opened.Load()))
	send(connectionsActive, prometheus.GaugeValue, float64(t.sessions.Load()))
	send(bytesTotal, prometheus.CounterValue, float64(t.in.bytes.Load()), "in")
	send(bytesTotal, prometheus.CounterValue, float64(t.out.bytes.Load()), "out")
	send(datagramsTotal, prometheus.CounterValue, float64(t.in.datagrams.Load()), "in")
	send(datagramsTotal, prometheus.CounterValue, float64(t.out.datagrams.Load()), "out")
	send(sessionsEvicted, prometheus.CounterValue, float64(t.evicted.Load()))
	for why, reason := range lossReasons {
		send(datagramsDropped, prometheus.CounterValue, float64(t.lost[why].Load()), reason)
	}
}
