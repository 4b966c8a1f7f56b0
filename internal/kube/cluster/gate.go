package cluster

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	kubeclient "github.com/k8singress/k8singress/internal/kube/client"
)

const (
	// atOnce is the maximum number of concurrent requests to the API server, for all readers together. A reader lists
	// and watches a single object.
	atOnce = 16
	// shortestWait and longestWait are the first and the maximum pause after a request to which the API server did not
	// respond. The pause applies to all readers and doubles with each failure.
	shortestWait = 500 * time.Millisecond
	longestWait  = 15 * time.Second
)

// gate limits the rate at which readers send requests to the API server. There can be thousands of readers, one for
// each watched object. So they must not send their requests all at once, and while the API server is unavailable, they
// must not retry independently of each other.
type gate struct {
	slots chan struct{}

	mu    sync.Mutex
	until time.Time
	wait  time.Duration
}

// pass calls ask, which must send one request to the API server, as soon as the rate limit allows it. It returns the
// error of ask, or the error of the context if the context ends first.
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

// answered is called with the error of a request, or nil. If err means that the API server did not respond, answered
// makes all readers wait for a while; otherwise it resets the delay. If several concurrent requests fail, the delay is
// increased only once.
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
