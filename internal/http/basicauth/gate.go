package basicauth

import (
	"context"
	"errors"
	"runtime"
	"sync"

	"github.com/k8singress/k8singress/internal/process/turns"
)

// gate limits the number of concurrent password verifications, so that half of the processors remain available for
// other work. Namespaces take turns, so password guessing in one namespace does not delay the clients of others.
type gate struct {
	mu    sync.Mutex
	queue *turns.Queue[*ticket]
	// waiting is the number of verifications of each namespace that wait or are running.
	waiting map[string]int
}

// maxWaiting is the maximum number of waiting verifications of a namespace. Each of them occupies a client connection,
// and the number of connections of all hosts is limited.
const maxWaiting = 1000

// ErrBusy is returned if too many passwords of the namespace are being verified.
var ErrBusy = errors.New("too many passwords for the namespace are being verified")

// ticket is one verification. turn is closed when the verification may start.
type ticket struct{ turn chan struct{} }

func newGate() *gate {
	most := max(1, runtime.GOMAXPROCS(0)/2)
	return &gate{queue: turns.New[*ticket](most, most), waiting: map[string]int{}}
}

// enter waits until a verification may start. The caller must call leave when the verification has ended.
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

// forget decrements the number of verifications of a namespace.
func (g *gate) forget(namespace string) {
	if g.waiting[namespace]--; g.waiting[namespace] == 0 {
		delete(g.waiting, namespace)
	}
}

// giveUp removes the ticket of a client that no longer waits. Its turn may have come in the meantime.
func (g *gate) giveUp(t *ticket) {
	select {
	case <-t.turn:
		g.queue.Done(t)
	default:
		g.queue.Remove(t)
	}
}

// change changes the queue, and starts the tickets whose turn has come.
func (g *gate) change(edit func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	edit()
	for t, ok := g.queue.Pop(); ok; t, ok = g.queue.Pop() {
		close(t.turn)
	}
}
