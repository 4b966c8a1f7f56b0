package balancer

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

const (
	// ejectAfter is the default number of consecutive failures after which an endpoint is ejected, which means that it
	// gets no requests for a while.
	ejectAfter = 3
	// firstEjection is how long an endpoint is ejected for the first time. After each failed trial request, this time
	// is doubled, up to longestEjection.
	firstEjection   = time.Second
	longestEjection = time.Minute
	// trialTime is the maximum time to wait for the result of a trial request, which tests whether an ejected endpoint
	// has recovered. After this time, another request may be the trial, because the first may be a stream that never
	// ends.
	trialTime = 10 * time.Second
)

// health tracks whether an endpoint is ejected or unhealthy. When the ejection time has passed, one request is sent to
// the endpoint as a trial. If it succeeds, the endpoint is used again; if it fails, the endpoint is ejected for longer.
type health struct {
	// failures is the number of consecutive failed requests.
	failures atomic.Int32
	// until is the time until which the endpoint is ejected; zero means that it is not ejected. trial is the start time
	// of the latest trial request, or zero.
	until, trial atomic.Int64
	// unhealthy is true if the endpoint has failed its health check.
	unhealthy atomic.Bool
	// spells is the number of consecutive ejections, which determines how long the next ejection lasts. It is guarded
	// by Backend.mu.
	spells int
}

// out reports whether the endpoint is ejected or unhealthy. Such an endpoint is skipped as long as others can be used.
func (e *Endpoint) out() bool { return e.health.until.Load() != 0 || e.health.unhealthy.Load() }

// claim reports whether the caller may send its request to the ejected endpoint, as the trial request that shows
// whether the endpoint has recovered. If claim returns true, the endpoint gets no other requests until the trial has
// ended.
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

// eject ejects an endpoint for a while, unless half of the endpoints are already ejected. If half of the endpoints
// fail, they probably have a common cause, and the other half could not take the whole load.
func (b *Backend) eject(e *Endpoint, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, until, s := b.now(), e.health.until.Load(), b.state.Load()
	switch {
	case until == 0 && (trial || !e.listed.Load() || 2*(b.ejected+1) > len(s.endpoints)):
		return
	case until != 0 && (!trial || now < until):
		// Ignore this failure: the failed request started before the endpoint was ejected.
		return
	}
	spell := min(firstEjection<<min(e.health.spells, 10), longestEjection)
	e.health.spells++
	e.health.until.Store(now + int64(spell))
	e.health.trial.Store(0)
	b.recount(s)
}

// Ejected returns the number of endpoints that are ejected.
func (b *Backend) Ejected() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ejected
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

// SetHealthy sets the result of the health check of the endpoint with the given address. An unhealthy endpoint is
// skipped as long as others can be used. Unknown addresses are ignored. An endpoint is healthy until SetHealthy is
// called. The result is kept for a while after the endpoint was removed.
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

// recount recalculates b.out, b.ejected and b.nextTrial. The caller must hold b.mu.
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

// due returns an ejected endpoint whose next trial request is due, or nil. The caller's request becomes this trial
// request.
func (b *Backend) due(now int64) *Endpoint {
	if now < b.nextTrial.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// Load the state again while holding the lock, because the endpoints may have changed since the caller loaded the
	// state.
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
