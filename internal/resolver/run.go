package resolver

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"
)

const (
	// atOnce is how many names are looked up at the same time.
	atOnce = 16
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
	var looking sync.WaitGroup
	defer looking.Wait()
	free := make(chan struct{}, atOnce)
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		n, c, wait := r.next()
		if n != nil {
			looking.Go(func() {
				defer func() { <-free }()
				r.look(ctx, n, c)
			})
			continue
		}
		<-free
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// next takes the name whose look-up is due from the queue, or says how long to wait for one.
func (r *Resolver) next() (*name, *client, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil || r.options.Access == Nothing {
		return nil, nil, idle
	}
	if n, ok := r.queue.Pop(time.Now()); ok {
		return n, r.client, 0
	}
	if due, ok := r.queue.Next(); ok {
		return nil, nil, time.Until(due)
	}
	return nil, nil, idle
}

// look asks for a name, and notes the answer. The host of a name does not change.
func (r *Resolver) look(ctx context.Context, n *name, c *client) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := c.lookup(limited, n.host)
	if ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names[n.host] != n {
		// Nobody follows it any more.
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
	r.rouse()
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
