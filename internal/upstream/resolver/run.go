package resolver

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/wake"
)

const (
	// maxLookups is the maximum number of concurrent lookups. maxPerNamespace is the maximum number of concurrent
	// lookups for one namespace, so that DNS servers that do not respond delay only the lookups of the namespaces that
	// use them.
	maxLookups      = 16
	maxPerNamespace = maxLookups / 4
	// minTTL and maxTTL are the minimum and maximum time after which a name is looked up again. Between these limits,
	// the TTL of the response is used.
	minTTL = 5 * time.Second
	maxTTL = 5 * time.Minute
	// firstRetry is the delay before the first retry of a failed lookup. The delay doubles with each failure, up to
	// lastRetry.
	firstRetry = 5 * time.Second
	lastRetry  = time.Minute
	// lookupTimeout is the maximum duration of a lookup, including all of its DNS queries.
	lookupTimeout = 20 * time.Second
)

// Run looks up names until ctx ends. It returns after all running lookups have ended.
func (r *Resolver) Run(ctx context.Context) {
	var looking panics.Group
	defer looking.Wait()
	r.wake.Loop(ctx, func() time.Duration {
		for {
			next, c, wait := r.next()
			if next.name == nil {
				return wait
			}
			looking.Go("resolver/name", func() { r.lookUp(ctx, next, c) })
		}
	})
}

// next returns the next name to look up. If no lookup may start now, it returns how long to wait. Within a namespace,
// names whose last lookup failed are looked up after all other names.
func (r *Resolver) next() (turn, *client, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil || r.options.Access == Nothing {
		return turn{}, nil, wake.Never
	}
	now := time.Now()
	for n, ok := r.queue.Pop(now); ok; n, ok = r.queue.Pop(now) {
		r.takeTurns(n)
	}
	if next, ok := r.due.Pop(); ok {
		r.forgetTurns(next.name)
		return next, r.client, 0
	}
	if due, ok := r.queue.Next(); ok {
		return turn{}, nil, time.Until(due)
	}
	return turn{}, nil, wake.Never
}

// lookUp looks up a name and stores the result. It reads n.host without holding the mutex, because the host never
// changes.
func (r *Resolver) lookUp(ctx context.Context, of turn, c *client) {
	n := of.name
	limited, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var a lookupResult
	err := panics.Run("resolver/name", func() (err error) {
		a, err = c.lookup(limited, n.host)
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due.Done(of)
	r.wake.Send()
	if ctx.Err() != nil || r.names.Get(n.host) != n {
		// Drop the result: no backend uses the name any more, or Run is ending.
		return
	}
	wait := min(max(a.ttl, minTTL), maxTTL)
	if err != nil {
		wait = r.failed(n, err)
	} else {
		r.succeeded(n, a)
	}
	switch {
	case c != r.client:
		r.queue.Set(n, time.Now())
	case err == nil && a.fixed:
		// Although the result stays valid, keep the name in the queue: Configure starts new lookups only for names in
		// the queue.
		r.queue.Set(n, time.Now().Add(forever))
	default:
		r.queue.Set(n, time.Now().Add(wait))
	}
}

// forever is the delay before the next lookup of a name that is not resolved by DNS, such as an IP address.
const forever = 10 * 365 * 24 * time.Hour

func (r *Resolver) succeeded(n *name, a lookupResult) {
	if n.failures > 0 && len(n.found) > 0 {
		r.log.Info("a name resolves again", zap.String("name", n.host))
	}
	n.err, n.failures = nil, 0
	r.sift(n, a.addresses)
}

// failed records a failed lookup and returns the delay before the next one. The name keeps its previous addresses.
func (r *Resolver) failed(n *name, err error) time.Duration {
	if n.failures == 0 {
		r.log.Warn("looking up a name failed; its previous addresses, if any, stay in use",
			zap.String("name", n.host),
			zap.Int("addresses", len(n.use)), zap.Error(err))
	}
	n.err = err
	n.failures++
	if !n.resolved {
		r.sift(n, nil)
	}
	return min(firstRetry<<min(n.failures-1, 10), lastRetry)
}
