package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/kubeclient"
)

const (
	// atOnce is how many of the readers of single objects ask the API server at the same time.
	atOnce = 16
	// shortestWait and longestWait are how long all of them wait after the API server has not answered.
	shortestWait = 500 * time.Millisecond
	longestWait  = 15 * time.Second
)

// gate holds back requests: thousands of readers must not ask at once, and one API server that is away is not asked by
// each of them again.
type gate struct {
	slots chan struct{}

	mu    sync.Mutex
	until time.Time
	wait  time.Duration
}

// pass calls ask as soon as the gate is open, and returns its error or that of the context.
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

// answered closes the gate for a while if the API server did not answer. Requests that fail together count once.
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
