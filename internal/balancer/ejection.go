package balancer

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

const (
	// ejectAfter is how many failures in a row eject an endpoint where the policy does not say.
	ejectAfter = 3
	// firstEjection is how long it is passed over then. Each failed trial doubles it, up to longestEjection.
	firstEjection   = time.Second
	longestEjection = time.Minute
	// trialTime is when another trial may begin although the one before has not ended: it may be a stream that never does.
	trialTime = 10 * time.Second
)

// health is whether an endpoint is passed over, and why. An ejected one is half open when its time is over: one request
// is let through, and decides.
type health struct {
	// failures are those in a row.
	failures atomic.Int32
	// until is when the time of an ejected endpoint is over; zero is not ejected. trial is when the latest trial began.
	until, trial atomic.Int64
	// unhealthy is what a checker says.
	unhealthy atomic.Bool
	// spells are the ejections in a row. They belong to the writer.
	spells int
}

// out says whether the endpoint is passed over while there are others.
func (e *Endpoint) out() bool { return e.health.until.Load() != 0 || e.health.unhealthy.Load() }

// claim says whether the caller's request is the trial of an ejected endpoint.
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

// eject passes an endpoint over for a while, unless too many are already: when half of them fail, the cause is most likely
// something that they share, and the rest could not take all of the load.
func (b *Backend) eject(e *Endpoint, trial bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, until, s := b.now(), e.health.until.Load(), b.state.Load()
	switch {
	case until == 0 && (trial || !e.listed.Load() || 2*(b.ejected+1) > len(s.endpoints)):
		return
	case until != 0 && (!trial || now < until):
		// What was under way when it was ejected fails, too.
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

// SetHealthy says what a health check found out about an address. One that is unhealthy is passed over while there are
// others. Addresses that are not known are ignored, and new ones are healthy until this says otherwise. One that has left is
// known for a while, and comes back as what this said last.
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

// recount brings up to date how many endpoints are out, and when the next one is to be tried.
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

// due returns an endpoint whose trial the caller's request is, or nil.
func (b *Backend) due(now int64) *Endpoint {
	if now < b.nextTrial.Load() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// The caller's list may have been replaced meanwhile: to count that one would pass over nobody, or somebody for nothing.
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
