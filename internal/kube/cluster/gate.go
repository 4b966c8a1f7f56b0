package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
)

const (
	// atOnce is the maximum number of concurrent requests of all readers of single objects.
	atOnce = 16
	// shortestWait and longestWait limit how long all readers wait if the API server does not respond.
	shortestWait = 500 * time.Millisecond
	longestWait  = 15 * time.Second
)

// gate limits requests: thousands of readers must not send requests at once, and while the API server is unavailable
// they must not retry independently.
type gate struct {
	slots chan struct{}

	mu    sync.Mutex
	until time.Time
	wait  time.Duration
}

// pass calls ask as soon as the gate is open. It returns the error of ask or of the context.
func (g *gate) pass(ctx context.Context, ask func() error) error {
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-g.slots }()
	if err := kubeclient.Pause(ctx, g.left()); err != nil {
		return err
	}
	err := ask()
	if ctx.Err() == nil {
		g.answered(err)
	}
	return err
}

func (g *gate) left() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Until(g.until)
}

// answered closes the gate for a while if the API server did not respond. Requests that fail at the same time increase
// the delay only once.
func (g *gate) answered(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch now := time.Now(); {
	case err == nil || !kubeclient.Away(err):
		g.wait = shortestWait
	case now.After(g.until):
		g.until = now.Add(g.wait/2 + rand.N(g.wait))
		g.wait = min(2*g.wait, longestWait)
	}
}
