package issuance

import (
	"context"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/turns"
)

// Run works until ctx ends, and then waits for what is under way. Other replicas with the same storage do too: leads says
// whether this is the one that asks issuers.
func (m *Manager) Run(ctx context.Context, leads func() bool) {
	var running panics.Group
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
			m.wakeForPending()
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
func (m *Manager) dispatch(ctx context.Context, running *panics.Group, leads bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.setup == nil {
		return beat
	}
	m.setLeads(leads)
	now := time.Now()
	for h, ok := m.delayed.Pop(now); ok; h, ok = m.delayed.Pop(now) {
		m.reads.Push(h.origin.Namespace, h, false)
	}
	m.beginSweep(ctx, running, now)
	m.begin(ctx, running, m.reads, m.fetch)
	m.begin(ctx, running, m.ariPolls, m.poll)
	rest := m.beginOrders(ctx, running, now)
	if next, ok := m.delayed.Next(); ok {
		rest = min(rest, max(next.Sub(now), 0))
	}
	return rest
}

// setLeads sets whether this replica orders certificates. When it begins to, it reads first what other replicas have got.
func (m *Manager) setLeads(leads bool) {
	if m.leads == leads {
		return
	}
	m.leads = leads
	m.ariPolls.Clear()
	m.budgets.forget()
	for _, h := range slices.Concat(m.orders.Clear(), m.renewals.Clear()) {
		m.readSoon(h)
	}
	for _, h := range m.hosts {
		// This replica, which asks from now on, learns better why something failed.
		h.lastError = nil
		if h.issued == nil || !h.issued.renewal.at.After(time.Now().Add(calm)) {
			m.readSoon(h)
		}
	}
}

// beginSweep looks through the storage now and then, in the replica that leads, once it knows its hosts.
func (m *Manager) beginSweep(ctx context.Context, running *panics.Group, now time.Time) {
	if !m.leads || m.unread > 0 || len(m.hosts) == 0 || now.Sub(m.swept) < sweepEvery {
		return
	}
	m.swept = now
	s := m.setup
	s.acquire()
	running.Go("issuance/sweep", func() {
		defer s.release()
		m.sweep(ctx, s)
	})
}

// task works on a host, without the lock.
type task func(ctx context.Context, s *setup, h *host)

func (m *Manager) begin(ctx context.Context, running *panics.Group, q *turns.Queue[*host], do task) {
	for h, ok := q.Pop(); ok; h, ok = q.Pop() {
		m.start(ctx, running, q, h, do)
	}
}

// beginOrders begins as many orders as the authority may be asked for now, renewals first.
func (m *Manager) beginOrders(ctx context.Context, running *panics.Group, now time.Time) time.Duration {
	rest := time.Minute
	for _, q := range []*turns.Queue[*host]{m.renewals, m.orders} {
		for m.mayOrder(now) {
			if wait, ok := m.pace.ready(now, q == m.renewals); m.setup.paced() && !ok {
				rest = min(rest, wait)
				break
			}
			h, ok := q.Pop()
			if !ok {
				break
			}
			m.pace.began(now)
			h.ordering = true
			m.start(ctx, running, q, h, m.order)
		}
	}
	return rest
}

// mayOrder says whether another order may begin. For a while after an authority wanted none of any host, which may be because of what one
// namespace has ordered, there is one at a time, and not before all hosts that waited are in their lines: what the authority takes
// then is shared out by turns.
func (m *Manager) mayOrder(now time.Time) bool {
	return !now.Before(m.careful) || m.orders.Running()+m.renewals.Running()+m.reads.Running()+m.reads.Len() == 0
}

// carefulFor is how long that is.
const carefulFor = time.Hour

func (m *Manager) start(ctx context.Context, running *panics.Group, q *turns.Queue[*host], h *host, do task) {
	s := m.setup
	s.acquire()
	h.busy = true
	running.Go("issuance/host", func() {
		defer m.wake()
		defer s.release()
		defer m.finish(q, h)
		do(ctx, s, h)
	})
}

// finish takes a host from the task that has ended, also from one that panicked.
func (m *Manager) finish(q *turns.Queue[*host], h *host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.Done(h)
	m.next(h)
}

// next queues a host for what follows the task that has ended.
func (m *Manager) next(h *host) {
	asked := h.ordering
	h.busy, h.ordering = false, false
	switch {
	case h.gone:
	case h.again || asked && h.lastError == nil:
		// The certificate is read back from the storage, the same way other replicas get it.
		h.again = false
		m.readSoon(h)
	default:
		m.plan(h, time.Now())
	}
}

// plan puts a host where it has to wait.
func (m *Manager) plan(h *host, now time.Time) {
	if !m.leads {
		m.delayed.Set(h, h.nextRead(now, false))
		return
	}
	due := now
	if h.issued != nil {
		due = h.issued.renewal.at
	}
	if h.lastError != nil {
		due = later(due, h.lastError.NotBefore)
	} else {
		// What was got may be due again at once.
		due = later(due, h.ordered.Add(renewCheck))
	}
	if !due.After(now) {
		if h.issued != nil {
			m.renewals.Push(h.origin.Namespace, h, false)
		} else {
			m.orders.Push(h.origin.Namespace, h, h.ordered.IsZero())
		}
		return
	}
	if h.issued != nil {
		if at, ok := h.issued.renewal.poll(h.polled); ok && !at.After(now) {
			m.ariPolls.Push(h.origin.Namespace, h, false)
			return
		} else if ok {
			due = earlier(due, at)
		}
		due = earlier(due, h.nextRead(now, true))
	}
	m.delayed.Set(h, later(due, now.Add(beat)))
}
