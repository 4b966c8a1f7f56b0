package balancer

import (
	"math"
	"sync/atomic"
	"time"
)

// decay is the time after which the weight of a measurement has fallen to 1/e. ingress-nginx uses the same value.
const decay = 10 * time.Second

// latency is an exponentially weighted moving average of an endpoint's response time. A measurement above the average
// replaces it at once, so that a stalling endpoint is avoided after its first slow response. The average falls with
// time, so that an endpoint without requests is tried again.
//
// The value is a single 64-bit word, so that it can be changed without a lock. It consists of the average in seconds as
// a float32 and the time of the last change in milliseconds as a uint32, which may overflow.
type latency struct{ bits atomic.Uint64 }

func pack(seconds float64, now int64) uint64 {
	return uint64(math.Float32bits(float32(seconds)))<<32 | uint64(milliseconds(now))
}

func milliseconds(now int64) uint32 { return uint32(now / int64(time.Millisecond)) }

// unpack returns the average in seconds at the time now, and the weight that the next measurement gets in the average.
func unpack(bits uint64, now int64) (seconds, fresh float64) {
	age := time.Duration(milliseconds(now)-uint32(bits)) * time.Millisecond
	stays := math.Exp(-float64(age) / float64(decay))
	return float64(math.Float32frombits(uint32(bits>>32))) * stays, 1 - stays
}

// read returns the current average in seconds.
func (l *latency) read(now int64) float64 {
	seconds, _ := unpack(l.bits.Load(), now)
	return seconds
}

// start sets the initial average of an endpoint that has no measurements yet.
func (l *latency) start(now int64, seconds float64) { l.bits.Store(pack(seconds, now)) }

// observe adds a measured response time. If the request failed, the measurement does not lower the average, because
// failures may be fast.
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
