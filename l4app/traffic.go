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
	// in and out are datagrams to endpoints and to clients.
	in, out           atomic.Uint64
	inBytes, outBytes atomic.Uint64
	lost              [losses]atomic.Uint64
	complained        atomic.Int64
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
