package l4app

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// loss is why a datagram was not passed on.
type loss int

const (
	// noEndpointToAsk is one for which there was no endpoint.
	noEndpointToAsk loss = iota
	// tooManySessions is one of a new client where there are as many as there may be.
	tooManySessions
	// endpointBusy and clientBusy are those for which there was no room on the way.
	endpointBusy
	clientBusy
	// notSendable is one that the system refused to send.
	notSendable
	losses
)

// lossReasons are the losses as the metrics have them.
var lossReasons = [losses]string{"no_endpoint", "max_sessions", "endpoint_busy", "client_busy", "not_sendable"}

// traffic is what is counted of the datagrams of a port. It is counted by batches.
type traffic struct {
	// sessions are those that there are, opened all that there ever were, and evicted those that had to make room.
	sessions, opened, evicted atomic.Int64
	// in is what went to endpoints, and out what went to clients.
	in, out    tally
	lost       [losses]atomic.Uint64
	complained atomic.Int64
}

// load is what one message carries, or several.
type load struct{ datagrams, bytes int }

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
	datagramsTotal = prometheus.NewDesc("k8singress_stream_datagrams_total",
		"How many datagrams have gone from clients to endpoints (direction in), and back (direction out).", []string{"port", "direction"}, nil)
	datagramsDropped = prometheus.NewDesc("k8singress_stream_datagrams_dropped_total",
		"How many datagrams were not passed on, by reason.", []string{"port", "reason"}, nil)
	sessionsActive = prometheus.NewDesc("k8singress_stream_sessions_active", "How many clients a UDP port has.", []string{"port"}, nil)
	sessionsTotal  = prometheus.NewDesc("k8singress_stream_sessions_total", "How many clients a UDP port has had.", []string{"port"}, nil)
	sessionsEnded  = prometheus.NewDesc("k8singress_stream_sessions_evicted_total",
		"How many clients of a UDP port had to make room for others.", []string{"port"}, nil)
)

// describe is Describe of a prometheus.Collector.
func (*traffic) describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{datagramsTotal, datagramsDropped, sessionsActive, sessionsTotal, sessionsEnded} {
		to <- d
	}
}

// collect is Collect of a prometheus.Collector, for the traffic of one port.
func (t *traffic) collect(port string, to chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{port}, labels...)...)
	}
	count(datagramsTotal, t.in.datagrams.Load(), "in")
	count(datagramsTotal, t.out.datagrams.Load(), "out")
	for why, reason := range lossReasons {
		count(datagramsDropped, t.lost[why].Load(), reason)
	}
	count(sessionsTotal, uint64(t.opened.Load()))
	count(sessionsEnded, uint64(t.evicted.Load()))
	to <- prometheus.MustNewConstMetric(sessionsActive, prometheus.GaugeValue, float64(t.sessions.Load()), port)
}

// quietAfterComplaint is for how long a port says nothing more of what clients can cause as often as they like.
const quietAfterComplaint = 10 * time.Second

// complain logs that a client got no endpoint, unless that was logged shortly before.
func (t *traffic) complain(log *zap.Logger, now time.Duration, client netip.AddrPort, err error) {
	last := t.complained.Load()
	if last != 0 && now-time.Duration(last) < quietAfterComplaint || !t.complained.CompareAndSwap(last, int64(now)) {
		return
	}
	log.Warn("no endpoint for a client; others are not mentioned for a while", zap.Stringer("client", client), zap.Error(err))
}
