package balancer

import (
	"math"
	"sync/atomic"
	"time"
)

// decay is how long it takes until what was measured counts 1/e of what it did: ingress-nginx's constant.
const decay = 10 * time.Second

// latency is an average of how long an endpoint takes, in which the latest counts most. A rise counts at once, so that an
// endpoint that begins to stall is left alone from its first slow answer on. Nothing measured lets it sink, so that it is
// tried again.
//
// It is one word, to be read and changed without a lock: seconds as a float32, and the milliseconds of the last change,
// which may wrap.
type latency struct{ bits atomic.Uint64 }

func pack(seconds float64, now int64) uint64 {
	return uint64(math.Float32bits(float32(seconds)))<<32 | uint64(milliseconds(now))
}

func milliseconds(now int64) uint32 { return uint32(now / int64(time.Millisecond)) }

// unpack returns what an average is worth now, in seconds, and how much of it what comes now is to replace.
func unpack(bits uint64, now int64) (seconds, fresh float64) {
	age := time.Duration(milliseconds(now)-uint32(bits)) * time.Millisecond
	stays := math.Exp(-float64(age) / float64(decay))
	return float64(math.Float32frombits(uint32(bits>>32))) * stays, 1 - stays
}

// read returns the average in seconds.
func (l *latency) read(now int64) float64 {
	seconds, _ := unpack(l.bits.Load(), now)
	return seconds
}

// start sets the average of an endpoint about which nothing is known yet.
func (l *latency) start(now int64, seconds float64) { l.bits.Store(pack(seconds, now)) }

// observe adds one measurement. A failure never makes an endpoint look better: to refuse is quick.
func (l *latency) observe(now int64, took time.Duration, failed bool) {
	for {
		bits := l.bits.Load()
		seconds, fresh := unpack(bits, now)
		next := took.Seconds()
		switch {
		case next >= seconds:
		case failed:
			return
		default:
			next = seconds + next*fresh
		}
		if l.bits.CompareAndSwap(bits, pack(next, now)) {
			return
		}
	}
}
