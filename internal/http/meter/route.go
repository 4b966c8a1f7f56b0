package meter

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// Route holds the counters of one route. Its methods are safe for concurrent use and do nothing if the Route is nil, as
// for requests that match no route.
type Route struct {
	// The value of a counter is its sum over the first cell and more cells. A route has more cells only if many of its
	// requests end at the same moment, because processors that write to the same memory wait for each other.
	first cell
	more  atomic.Pointer[[]cell]
	// collisions is the number of times that two requests wrote to a counter at the same moment.
	collisions atomic.Uint64
	// Labels must not be changed.
	Labels Labels
	// users is the reference count. The registry's lock guards it.
	users int
	// sets are the label sets of ingress-nginx. ended is set when the last use has ended; the route then gets no more
	// label sets.
	sets  atomic.Pointer[routeSets]
	ended atomic.Bool
	// text is the text of the labels in metrics. Registry.sort sets it.
	text string
	_    [8]byte
}

// bounds are the upper bounds of the histogram buckets for the duration of requests.
var bounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 10 * time.Second,
}

// classes is the number of status classes, from 1xx to 5xx.
const classes = 5

// cell holds one part of each counter. It fills three cache lines of 64 bytes, of which most requests use two. The
// memory allocator aligns a Route to cache lines because its size is a multiple of 64 bytes, and aligns slices of cells
// for the same reason. So requests of different routes never write to the same line.
type cell struct {
	inFlight, duration, firstByte, sent, received atomic.Int64
	// unanswered is the number of requests without a response.
	retries, unanswered atomic.Uint64
	_                   [8]byte
	requests            [classes]atomic.Uint64
	// durations are the numbers of requests by bucket. The last bucket has no upper bound.
	durations [len(bounds) + 1]atomic.Uint64
}

// Answer describes a request that has ended.
type Answer struct {
	// Status is the status of the response. It is zero without a response: if the client closed the connection before,
	// or if a handler ended the request, such as Caddy's abort. Such a request counts as 499, as in the access log.
	Status int
	// Took is the time from the end of the request header to the end of the response. FirstByte is the time until the
	// endpoint began its response, or Took if the controller itself responded.
	Took, FirstByte time.Duration
	// Retries is the number of attempts after the first one.
	Retries int
	// Received and Sent are the numbers of body bytes from and to the client, including the data of an upgraded
	// connection.
	Received, Sent int64
}

// Record counts a request that has ended. It must be called once for each request.
func (r *Route) Record(a *Answer) {
	if r == nil {
		return
	}
	c := r.choose()
	requests := &c.requests[classOf(a.Status)]
	if n := requests.Load(); !requests.CompareAndSwap(n, n+1) {
		requests.Add(1)
		r.collided()
	}
	c.durations[bucketOf(a.Took)].Add(1)
	c.duration.Add(int64(a.Took))
	if a.Status != 0 {
		c.firstByte.Add(int64(a.FirstByte))
	} else {
		c.unanswered.Add(1)
	}
	if a.Retries > 0 {
		c.retries.Add(uint64(a.Retries))
	}
	if a.Received > 0 {
		c.received.Add(a.Received)
	}
	if a.Sent > 0 {
		c.sent.Add(a.Sent)
	}
}

// Flight is a request in flight.
type Flight struct{ cell *cell }

// Begin counts a request in flight until End is called.
func (r *Route) Begin() Flight {
	if r == nil {
		return Flight{}
	}
	c := r.choose()
	c.inFlight.Add(1)
	return Flight{c}
}

// End is called when the request is no longer in flight.
func (f Flight) End() {
	if f.cell != nil {
		f.cell.inFlight.Add(-1)
	}
}

// choose returns one of the cells.
func (r *Route) choose() *cell {
	more := r.more.Load()
	if more == nil {
		return &r.first
	}
	// The number of cells is a power of two.
	return &(*more)[rand.Uint32()&uint32(len(*more)-1)]
}

// A route gets more cells after manyCollisions. Few routes ever need them. Their number is at most maxCells.
const (
	manyCollisions = 256
	maxCells       = 32
)

// collided counts a collision, and adds cells after many of them: two for each processor, so that collisions are rare.
func (r *Route) collided() {
	if r.collisions.Add(1) != manyCollisions {
		return
	}
	n := 2
	for n < min(2*runtime.GOMAXPROCS(0), maxCells) {
		n *= 2
	}
	more := make([]cell, n)
	r.more.Store(&more)
}

// clientGone is the class of requests without a response, which the access log reports with the status 499.
const clientGone = 3

// classOf returns the index of the counter for a status.
func classOf(status int) int {
	if status == 0 {
		return clientGone
	}
	return min(max(status/100, 1), classes) - 1
}

// bucketOf returns the index of the bucket for a duration.
func bucketOf(took time.Duration) int {
	for i := range bounds {
		if took <= bounds[i] {
			return i
		}
	}
	return len(bounds)
}

// Totals are the values of the counters of a route.
type Totals struct {
	// Requests are the numbers of requests by the class of their status, from 1xx to 5xx.
	Requests [classes]uint64
	// Durations are the numbers of requests by the bucket of their duration. They are not cumulative. The last bucket
	// has no upper bound. Duration is the sum of all durations.
	Durations [len(bounds) + 1]uint64
	Duration  time.Duration
	// FirstByte is the sum of the times to the first byte of Answered requests.
	FirstByte      time.Duration
	Answered       uint64
	Retries        uint64
	Received, Sent uint64
	InFlight       int64
}

// Totals returns the current values of the counters.
func (r *Route) Totals() (t Totals) {
	r.first.addTo(&t)
	if more := r.more.Load(); more != nil {
		for i := range *more {
			(*more)[i].addTo(&t)
		}
	}
	// The cells are not read at the same moment, so a request that ends meanwhile may count in one of them only.
	t.InFlight = max(t.InFlight, 0)
	return t
}

func (c *cell) addTo(t *Totals) {
	// Record changes this counter last, so reading it first never makes the difference negative.
	t.Answered -= c.unanswered.Load()
	for i := range c.requests {
		n := c.requests[i].Load()
		t.Answered, t.Requests[i] = t.Answered+n, t.Requests[i]+n
	}
	for i := range c.durations {
		t.Durations[i] += c.durations[i].Load()
	}
	t.Duration += time.Duration(c.duration.Load())
	t.FirstByte += time.Duration(c.firstByte.Load())
	t.Retries += c.retries.Load()
	t.Received += uint64(c.received.Load())
	t.Sent += uint64(c.sent.Load())
	t.InFlight += c.inFlight.Load()
}

// used reports whether the route has got a request.
func (r *Route) used() bool {
	t := r.Totals()
	return t.InFlight > 0 || t.Requests != [classes]uint64{}
}

// add adds the values of another route.
func (t *Totals) add(with *Totals) {
	for i := range t.Requests {
		t.Requests[i] += with.Requests[i]
	}
	for i := range t.Durations {
		t.Durations[i] += with.Durations[i]
	}
	t.Duration += with.Duration
	t.FirstByte += with.FirstByte
	t.Answered += with.Answered
	t.Retries += with.Retries
	t.Received += with.Received
	t.Sent += with.Sent
	t.InFlight += with.InFlight
}
