package l4app

import (
	"net/netip"
	"sync/atomic"
	"time"

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

// quiet is for how long a port says nothing more of what clients can cause as often as they like.
const quietAfterComplaint = 10 * time.Second

// complain logs that a client got no endpoint, unless that was logged shortly before.
func (t *traffic) complain(log *zap.Logger, now time.Duration, client netip.AddrPort, err error) {
	last := t.complained.Load()
	if last != 0 && now-time.Duration(last) < quietAfterComplaint || !t.complained.CompareAndSwap(last, int64(now)) {
		return
	}
	log.Warn("no endpoint for a client; others are not mentioned for a while", zap.Stringer("client", client), zap.Error(err))
}
