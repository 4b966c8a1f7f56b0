package issuance

import (
	"context"
	"sync"
	"time"
)

// Run works until ctx ends, and then waits for what is under way. Other replicas with the same storage do too: leads says
// whether this is the one that asks issuers.
func (m *Manager) Run(ctx context.Context, leads func() bool) {
	var running sync.WaitGroup
	defer running.Wait()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	timer := time.NewTimer(beat)
	defer timer.Stop()
	for {
		timer.Reset(m.dispatch(ctx, &running, leads()))
		select {
		case <-ctx.Done():
			m.end()
			return
		case <-m.kick:
		case <-ticker.C:
			m.notice()
		case <-timer.C:
		}
	}
}

// end cleans up the setup that is current. There is none after it.
func (m *Manager) end() {
	m.mu.Lock()
	last := m.setup
	m.setup, m.ended = nil, true
	m.mu.Unlock()
	if last != nil {
		last.release()
	}
}

// dispatch begins what there is to do and room for, and returns when to come back at the latest.
func (m *Manager) dispatch(ctx context.Context, running *sync.WaitGroup, leads bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.setup == nil {
		return beat
	}
	m.lead(leads)
	now := time.Now()
	for h := m.agenda.pop(now); h != nil; h = m.agenda.pop(now) {
		m.looks.push(h, false)
	}
	m.beginSweep(ctx, running, now)
	m.begin(ctx, running, m.looks, m.fetch)
	m.begin(ctx, running, m.polls, m.poll)
	rest := m.beginAsking(ctx, running, now)
	if next, ok := m.agenda.next(); ok {
		rest = min(rest, max(next.Sub(now), 0))
	}
	return rest
}

// lead notes whether this replica asks. Who begins to looks at once for what is to be asked for.
func (m *Manager) lead(leads bool) {
	if m.leads == leads {
		return
	}
	m.leads = leads
	m.polls.clear()
	for _, h := range m.asks.clear() {
		m.look(h)
	}
	for _, h := range m.hosts {
		// Who asks from now on knows better why something failed.
		h.trouble = nil
		if h.issued == nil || !h.issued.renewal.at.After(time.Now().Add(calm)) {
			m.look(h)
		}
	}
}

// beginSweep looks through the storage now and then, in the replica that leads, once it knows its hosts.
func (m *Manager) beginSweep(ctx context.Context, running *sync.WaitGroup, now time.Time) {
	if !m.leads || m.unread > 0 || len(m.hosts) == 0 || now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	s := m.setup
	s.acquire()
	running.Go(func() {
		defer s.release()
		m.sweep(ctx, s)
	})
}

// task works on a host, without the lock.
type task func(ctx context.Context, s *setup, h *host)

func (m *Manager) begin(ctx context.Context, running *sync.WaitGroup, q *queue, do task) {
	for h := q.pop(); h != nil; h = q.pop() {
		m.start(ctx, running, q, h, do)
	}
}

// beginAsking begins as many orders as the authority may be asked for now.
func (m *Manager) beginAsking(ctx context.Context, running *sync.WaitGroup, now time.Time) time.Duration {
	for {
		if wait, ok := m.pace.ready(now); m.setup.paced() && !ok {
			return wait
		}
		h := m.asks.pop()
		if h == nil {
			return time.Minute
		}
		m.pace.began(now)
		h.asking = true
		m.start(ctx, running, m.asks, h, m.ask)
	}
}

func (m *Manager) start(ctx context.Context, running *sync.WaitGroup, q *queue, h *host, do task) {
	s := m.setup
	s.acquire()
	h.busy = true
	running.Go(func() {
		do(ctx, s, h)
		m.mu.Lock()
		q.done(h)
		m.settle(h)
		m.mu.Unlock()
		s.release()
		m.wake()
	})
}

// settle says what comes next for a host that has been worked on.
func (m *Manager) settle(h *host) {
	asked := h.asking
	h.busy, h.asking = false, false
	switch {
	case h.gone:
	case h.again || asked && h.trouble == nil:
		// What was got stands in the storage, as it does for the other replicas.
		h.again = false
		m.look(h)
	default:
		m.plan(h, time.Now())
	}
}

// plan puts a host where it has to wait.
func (m *Manager) plan(h *host, now time.Time) {
	if !m.leads {
		m.agenda.set(h, h.next(now, false))
		return
	}
	due := now
	if h.issued != nil {
		due = h.issued.renewal.at
	}
	if h.trouble != nil {
		due = later(due, h.trouble.NotBefore)
	} else {
		// What was got may be due again at once.
		due = later(due, h.asked.Add(renewCheck))
	}
	if !due.After(now) {
		m.asks.push(h, h.asked.IsZero() && h.issued == nil)
		return
	}
	if h.issued != nil {
		if at, ok := h.issued.renewal.poll(h.polled); ok && !at.After(now) {
			m.polls.push(h, false)
			return
		} else if ok {
			due = earliest(due, at)
		}
		due = earliest(due, h.next(now, true))
	}
	m.agenda.set(h, later(due, now.Add(beat)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
