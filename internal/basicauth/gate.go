package basicauth

import (
	"context"
	"runtime"
	"sync"

	"github.com/k8singress/k8singress/internal/turns"
)

// gate lets in so many verifications at a time that half of the processors are left for everything else. Namespaces take turns, so that
// who guesses the passwords of one does not hold up the clients of another.
type gate struct {
	mu    sync.Mutex
	queue *turns.Queue[*ticket]
}

// ticket is one verification. Its turn is closed when that comes.
type ticket struct{ turn chan struct{} }

func newGate() *gate {
	most := max(1, runtime.GOMAXPROCS(0)/2)
	return &gate{queue: turns.New[*ticket](most, most)}
}

// enter waits for a turn, and returns what ends it.
func (g *gate) enter(ctx context.Context, namespace string) (leave func(), err error) {
	t := &ticket{make(chan struct{})}
	g.change(func() { g.queue.Push(namespace, t, false) })
	select {
	case <-t.turn:
		return func() { g.change(func() { g.queue.Done(t) }) }, nil
	case <-ctx.Done():
		g.change(func() { g.giveUp(t) })
		return nil, ctx.Err()
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
