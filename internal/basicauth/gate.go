package basicauth

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/k8singress/k8singress/internal/turns"
)

// gate lets in so many verifications at a time that half of the processors are left for everything else. Namespaces take turns, so that
// who guesses the passwords of one does not hold up the clients of another.
type gate struct {
	mu    sync.Mutex
	queue *turns.Queue[*ticket]
	// waiting counts the verifications of each namespace that wait for their turn, or have it.
	waiting map[string]int
}

// mostWaiting is how many verifications of a namespace may wait: each keeps a connection of a client, and those of all hosts are bounded.
const mostWaiting = 1000

// ErrBusy says that too many passwords of the namespace are being verified.
var ErrBusy = errors.New("too many passwords for the namespace are being verified")

// ticket is one verification. Its turn is closed when that comes.
type ticket struct{ turn chan struct{} }

func newGate() *gate {
	most := max(1, runtime.GOMAXPROCS(0)/2)
	return &gate{queue: turns.New[*ticket](most, most), waiting: map[string]int{}}
}

// enter waits for a turn, and returns what ends it.
func (g *gate) enter(ctx context.Context, namespace string) (leave func(), err error) {
	t, full := &ticket{make(chan struct{})}, false
	g.change(func() {
		if full = g.waiting[namespace] >= mostWaiting; !full {
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

// forget ends the waiting of a verification.
func (g *gate) forget(namespace string) {
	if g.waiting[namespace]--; g.waiting[namespace] == 0 {
		delete(g.waiting, namespace)
	}
}

// giveUp is for who has gone. The turn may have come meanwhile.
func (g *gate) giveUp(t *ticket) {
	select {
	case <-t.turn:
		g.queue.Done(t)
	default:
		g.queue.Remove(t)
	}
}

// change changes the queue, and tells those whose turn comes by it.
func (g *gate) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	for t, ok := g.queue.Pop(); ok; t, ok = g.queue.Pop() {
		close(t.turn)
	}
}
