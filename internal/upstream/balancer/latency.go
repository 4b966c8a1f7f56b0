package balancer

import (
	"math"
	"sync/atomic"
	"time"
)

// decay is the time after which the weight of a measurement has fallen to 1/e: ingress-nginx's constant.
const decay = 10 * time.Second

// latency is an exponentially weighted moving average of an endpoint's response time. A higher value replaces the
// average at once, so that a stalling endpoint is avoided from its first slow response on. Without measurements the
// average falls, so that the endpoint is tried again.
//
// It is one word, so that it can be read and changed without a lock: the seconds as a float32, and the time of the last
// change in milliseconds, which may wrap.
type latency struct{ bits atomic.Uint64 }

func pack(seconds float64, now int64) uint64 {
	return uint64(math.Float32bits(float32(seconds)))<<32 | uint64(milliseconds(now))
}

func milliseconds(now int64) uint32 { return uint32(now / int64(time.Millisecond)) }

// unpack returns the decayed average in seconds, and the weight of the next measurement.
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

// start sets the average of an endpoint without measurements.
func (l *latency) start(now int64, seconds float64) { l.bits.Store(pack(seconds, now)) }

// observe adds a measurement. A failure never lowers the average, because an endpoint may fail quickly.
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
