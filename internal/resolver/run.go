package resolver

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/panics"
)

const (
	// atOnce is how many names are looked up at the same time, and share how many of one namespace: names whose servers do not answer
	// take all of their time.
	atOnce = 16
	share  = atOnce / 4
	// An answer holds for its TTL, but for no less and no more than this.
	leastTTL = 5 * time.Second
	mostTTL  = 5 * time.Minute
	// After a failure a name is asked for again, each time twice as late.
	firstRetry = 5 * time.Second
	lastRetry  = time.Minute
	// patience is how long one look-up may take, with all its questions.
	patience = 20 * time.Second
	// idle is how long Run waits when no name does.
	idle = time.Hour
)

// Run looks names up until ctx ends. When it has returned, nothing runs any more.
func (r *Resolver) Run(ctx context.Context) {
	var looking panics.Group
	defer looking.Wait()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		next, c, wait := r.next()
		if next.name != nil {
			looking.Go("resolver/name", func() { r.ask(ctx, next, c) })
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// next returns a name that is due and whose turn it is, or says how long to wait for one. Of the names of a namespace, those that
// have failed come last.
func (r *Resolver) next() (turn, *client, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil || r.options.Access == Nothing {
		return turn{}, nil, idle
	}
	now := time.Now()
	for n, ok := r.queue.Pop(now); ok; n, ok = r.queue.Pop(now) {
		n.waiting = n.namespaces()
		for _, namespace := range n.waiting {
			r.due.Push(namespace, turn{n, namespace}, n.failures == 0)
		}
	}
	if next, ok := r.due.Pop(); ok {
		r.forgetTurns(next.name)
		return next, r.client, 0
	}
	if due, ok := r.queue.Next(); ok {
		return turn{}, nil, time.Until(due)
	}
	return turn{}, nil, idle
}

// ask asks for a name, and notes the answer. The host of a name does not change.
func (r *Resolver) ask(ctx context.Context, of turn, c *client) {
	n := of.name
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var a answer
	err := panics.Run("resolver/name", func() (err error) {
		a, err = c.lookup(limited, n.host)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.Done(of)
	r.rouse()
	if ctx.Err() != nil || r.names[n.host] != n {
		// It is not followed any more.
		return
	}
	wait := min(max(a.ttl, leastTTL), mostTTL)
	if err != nil {
		wait = r.failed(n, err)
	} else {
		r.answered(n, a)
	}
	switch {
	case c != r.client:
		r.queue.Set(n, time.Now())
	case err == nil && a.fixed:
		// It stays in the queue for Configure.
		r.queue.Set(n, time.Now().Add(forever))
	default:
		r.queue.Set(n, time.Now().Add(wait))
	}
}

// forever is when a name is looked up again that is no name of the DNS.
const forever = 10 * 365 * 24 * time.Hour

func (r *Resolver) answered(n *name, a answer) {
	if n.failures > 0 && len(n.found) > 0 {
		r.log.Info("a name is found again", zap.String("name", n.host))
	}
	n.err, n.failures = nil, 0
	r.sift(n, a.addresses)
}

// failed keeps the last answer, and returns when to ask again.
func (r *Resolver) failed(n *name, err error) time.Duration {
	if n.failures == 0 {
		r.log.Warn("looking up a name failed; what it led to before, if anything, stays in use", zap.String("name", n.host),
			zap.Int("addresses", len(n.use)), zap.Error(err))
	}
	n.err = err
	n.failures++
	if !n.asked {
		r.sift(n, nil)
	}
	return min(firstRetry<<min(n.failures-1, 10), lastRetry)
}
