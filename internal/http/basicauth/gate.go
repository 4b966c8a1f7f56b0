package basicauth

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/k8singress/k8singress/internal/process/turns"
)

// gate is a semaphore that limits the number of concurrent password verifications to half of the processors. Namespaces
// take turns, so password guessing in one namespace does not delay the clients of other namespaces.
type gate struct {
	mu    sync.Mutex
	queue *turns.Queue[*ticket]
	// waiting maps each namespace to the number of its verifications that are waiting or running.
	waiting map[string]int
}

// maxWaiting is the maximum number of waiting and running verifications of a namespace. It is limited because each of
// them keeps a client connection open, and connections are shared by all namespaces.
const maxWaiting = 1000

// ErrBusy is returned if the namespace has reached its limit of waiting password verifications.
var ErrBusy = errors.New("too many passwords for the namespace are being verified")

// ticket represents one verification in the queue. turn is closed when the verification may start.
type ticket struct{ turn chan struct{} }

func newGate() *gate {
	most := max(1, runtime.GOMAXPROCS(0)/2)
	return &gate{queue: turns.New[*ticket](most, most), waiting: map[string]int{}}
}

// enter waits until the verification may start. The caller must call leave when the verification has ended. enter
// returns ErrBusy if too many verifications of the namespace are waiting, or ctx.Err() if ctx ends first.
func (g *gate) enter(ctx context.Context, namespace string) (leave func(), err error) {
	t, full := &ticket{make(chan struct{})}, false
	g.change(func() {
		if full = g.waiting[namespace] >= maxWaiting; !full {
			g.waiting[namespace]++
			g.queue.Push(namespace, t, false)
		}
	})
	if full {
		return nil, ErrBusy
	}
	select {
	case <-t.turn:
		return func() { g.change(func() { g.queue.Done(t); g.forget(namespace) }) }, nil
	case <-ctx.Done():
		g.change(func() { g.giveUp(t); g.forget(namespace) })
		return nil, ctx.Err()
	}
}

// forget decrements the verification count of a namespace. The caller must hold mu.
func (g *gate) forget(namespace string) {
	if g.waiting[namespace]--; g.waiting[namespace] == 0 {
		delete(g.waiting, namespace)
	}
}

// giveUp removes the ticket of a client that has stopped waiting. If the verification was already allowed to start,
// giveUp lets the next one start. The caller must hold mu.
func (g *gate) giveUp(t *ticket) {
	select {
	case <-t.turn:
		g.queue.Done(t)
	default:
		g.queue.Remove(t)
	}
}

// change locks mu and calls edit, which may add verifications to the queue and remove them. It then starts all
// verifications that may run now.
func (g *gate) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	for t, ok := g.queue.Pop(); ok; t, ok = g.queue.Pop() {
		close(t.turn)
	}
}
