package balancer

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

const (
	// ejectAfter is the default number of consecutive failures that eject an endpoint.
	ejectAfter = 3
	// firstEjection is the duration of the first ejection. Each failed trial doubles it, up to longestEjection.
	firstEjection   = time.Second
	longestEjection = time.Minute
	// trialTime is the time after which another trial may start even if the previous one has not ended. That one may be
	// an endless stream.
	trialTime = 10 * time.Second
)

// health tracks whether an endpoint is ejected or unhealthy. When the ejection time of an endpoint is over, it is half
// open: one request goes to it as a trial, whose result decides whether the endpoint returns.
type health struct {
	// failures is the number of consecutive failures.
	failures atomic.Int32
	// until is the end of the ejection time; zero means that the endpoint is not ejected. trial is the start of the
	// latest trial.
	until, trial atomic.Int64
	// unhealthy is the result of the health check.
	unhealthy atomic.Bool
	// spells is the number of consecutive ejections. The mutex of the Backend guards it.
	spells int
}

// out reports whether the endpoint is ejected or unhealthy. Such an endpoint is skipped while there are others.
func (e *Endpoint) out() bool { return e.health.until.Load() != 0 || e.health.unhealthy.Load() }

// claim reports whether the caller's request becomes the trial of the ejected endpoint.
func (e *Endpoint) claim(now int64) bool {
	until, trial := e.health.until.Load(), e.health.trial.Load()
	if until == 0 || now < until || e.health.unhealthy.Load() || trial != 0 && now-trial < int64(trialTime) {
		return false
	}
	return e.health.trial.CompareAndSwap(trial, now)
}

func (e *Endpoint) succeeded(trial bool) {
	if e.health.failures.Load() != 0 {
		e.health.failures.Store(0)
	}
	if trial && e.health.until.Load() != 0 {
		e.backend.restore(e)
	}
}

func (e *Endpoint) failed(trial bool) {
	n := e.health.failures.Add(1)
	limit := e.backend.state.Load().policy.ejectAfter()
	if trial || limit > 0 && n >= limit && e.health.until.Load() == 0 {
		e.backend.eject(e, trial)
	}
}

// eject ejects an endpoint for a while, unless half of the endpoints are ejected already. When half of them fail, the
// cause is probably something that they share, and the others could not take all of the load.
func (b *Backend) eject(e *Endpoint, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, until, s := b.now(), e.health.until.Load(), b.state.Load()
	switch {
	case until == 0 && (trial || !e.listed.Load() || 2*(b.ejected+1) > len(s.endpoints)):
		return
	case until != 0 && (!trial || now < until):
		// The failure belongs to a request that started before the ejection.
		return
	}
	spell := min(firstEjection<<min(e.health.spells, 10), longestEjection)
	e.health.spells++
	e.health.until.Store(now + int64(spell))
	e.health.trial.Store(0)
	b.recount(s)
}

func (b *Backend) restore(e *Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.forgive()
	b.recount(b.state.Load())
}

func (e *Endpoint) forgive() {
	e.health.spells = 0
	e.health.failures.Store(0)
	e.health.until.Store(0)
	e.health.trial.Store(0)
}

// SetHealthy sets the result of the health check for an address. An unhealthy endpoint is skipped while there are
// others. Unknown addresses are ignored, and new endpoints are healthy until SetHealthy is called. The health of a
// removed endpoint is kept while the endpoint is remembered.
func (b *Backend) SetHealthy(address string, healthy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if e := b.gone[address]; e != nil {
		e.health.unhealthy.Store(!healthy)
	}
	for _, e := range s.endpoints {
		if e.address == address {
			e.health.unhealthy.Store(!healthy)
		}
	}
	b.recount(s)
}

// recount updates out, ejected and nextTrial.
func (b *Backend) recount(s *state) {
	next, out := int64(math.MaxInt64), 0
	b.ejected = 0
	for _, e := range s.endpoints {
		if e.out() {
			out++
		}
		until, trial := e.health.until.Load(), e.health.trial.Load()
		if until == 0 {
			continue
		}
		b.ejected++
		if trial != 0 {
			until = max(until, trial+int64(trialTime))
		}
		if !e.health.unhealthy.Load() {
			next = min(next, until)
		}
	}
	b.nextTrial.Store(next)
	b.out.Store(int32(out))
}

// due returns an endpoint for which the caller's request becomes the trial, or nil.
func (b *Backend) due(now int64) *Endpoint {
	if now < b.nextTrial.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// Load the state again under the lock: the caller's state may be outdated, and its counts would be wrong.
	s := b.state.Load()
	defer b.recount(s)
	for _, e := range s.endpoints {
		if e.claim(now) {
			return e
		}
	}
	return nil
}

func (p *policy) ejectAfter() int32 { return int32(cmp.Or(p.EjectAfter, ejectAfter)) }
