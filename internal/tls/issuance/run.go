package issuance

import (
	"context"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/turns"
)

// Run reads, orders and renews certificates until ctx ends, and then waits for running tasks. Each replica calls Run
// with the same storage. leads reports whether this replica is the leader: only the leader orders certificates.
func (m *Manager) Run(ctx context.Context, leads func() bool) {
	var running panics.Group
	defer running.Wait()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	timer := time.NewTimer(tick)
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

// end releases the current setup, which holds the issuers and the storage, and prevents Configure from creating a new
// one.
func (m *Manager) end() {
	m.mu.Lock()
	last := m.setup
	m.setup, m.ended = nil, true
	m.mu.Unlock()
	if last != nil {
		last.release()
	}
}

// dispatch starts as many due tasks as the limits on concurrent tasks allow. It must be called again after the returned
// duration at the latest.
func (m *Manager) dispatch(ctx context.Context, running *panics.Group, leads bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.setup == nil {
		return tick
	}
	m.setLeads(leads)
	now := time.Now()
	for h, ok := m.delayed.Pop(now); ok; h, ok = m.delayed.Pop(now) {
		m.reads.Push(h.origin.Namespace, h, false)
	}
	m.beginSweep(ctx, running, now)
	m.beginRequests(ctx, running, now)
	m.beginAsks(ctx, running)
	m.begin(ctx, running, m.reads, m.fetch)
	m.begin(ctx, running, m.ariPolls, m.poll)
	rest := m.beginOrders(ctx, running, now)
	if next, ok := m.delayed.Next(); ok {
		rest = min(rest, max(next.Sub(now), 0))
	}
	return rest
}

// setLeads records whether this replica is the leader. A new leader first reads the certificates that other replicas
// have ordered.
func (m *Manager) setLeads(leads bool) {
	if m.leads == leads {
		return
	}
	m.leads, m.requestsChanged = leads, true
	m.ariPolls.Clear()
	m.budgets.forget()
	for _, h := range slices.Concat(m.orders.Clear(), m.renewals.Clear()) {
		m.readSoon(h)
	}
	for h := range m.hosts.Values() {
		// Clear the error, which may be outdated: as the new leader, this replica orders the certificate itself.
		h.lastError = nil
		if h.issued == nil || !h.issued.renewal.at.After(time.Now().Add(calm)) {
			m.readSoon(h)
		}
	}
}

// beginSweep starts a search for obsolete records in the storage, if enough time has passed since the last search. Only
// the leader does this, and only after the certificates of all hosts have been read.
func (m *Manager) beginSweep(ctx context.Context, running *panics.Group, now time.Time) {
	if !m.leads || m.unread > 0 || m.hosts.Len() == 0 || now.Sub(m.swept) < sweepEvery {
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

// task is the work to do for a host that was taken from a queue, such as ordering its certificate. The function is
// called without holding the manager's mutex.
type task func(ctx context.Context, s *setup, h *host)

func (m *Manager) begin(ctx context.Context, running *panics.Group, q *turns.Queue[*host], do task) {
	for h, ok := q.Pop(); ok; h, ok = q.Pop() {
		m.start(ctx, running, q, h, do)
	}
}

// beginOrders starts as many orders as the rate limit allows now, first for renewals and then for new names. It must be
// called again after the returned duration at the latest.
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

// mayOrder reports whether another order may start. Usually it returns true. After a certificate authority has reported
// a rate limit for all hosts, until the time m.careful, orders are made one at a time, and only while no certificates
// are being read from the storage. Then all hosts that need a certificate are already in the queue, which serves the
// namespaces in turn, so that one namespace cannot use up the rate limit.
func (m *Manager) mayOrder(now time.Time) bool {
	return !now.Before(m.careful) || m.orders.Running()+m.renewals.Running()+m.reads.Running()+m.reads.Len() == 0
}

// pacedAfterStart is how long orders are made one at a time after the end of a certificate authority's rate limit.
const pacedAfterStart = time.Hour

func (m *Manager) start(ctx context.Context, running *panics.Group, q *turns.Queue[*host], h *host, do task) {
	s := m.setup
	s.acquire()
	h.busy = true
	running.Go("issuance/host", func() {
		defer m.kick.Send()
		defer s.release()
		defer m.finish(q, h)
		do(ctx, s, h)
		m.answerRequest(ctx, s, h.demand)
	})
}

// finish is called when the task for a host has ended, even after a panic. It schedules the host's next task.
func (m *Manager) finish(q *turns.Queue[*host], h *host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.Done(h)
	m.next(h)
}

// next schedules the next task for a host after its previous task has ended.
func (m *Manager) next(h *host) {
	ordered := h.ordering
	h.busy, h.ordering = false, false
	switch {
	case h.gone:
	case h.again || ordered && h.lastError == nil:
		// Read the new certificate from the storage, as the other replicas do.
		h.again = false
		m.readSoon(h)
	default:
		m.plan(h, time.Now())
	}
}

// plan schedules the next task for a host. If a task is due, the host is added to the queue for this task, otherwise to
// m.delayed.
func (m *Manager) plan(h *host, now time.Time) {
	if !m.leads || !h.wanted() && h.issued == nil {
		m.delayed.Set(h, h.nextRead(now, false))
		return
	}
	due, pause := now, renewCheck
	if h.issued != nil {
		due, pause = h.issued.renewal.at, h.issued.renewal.check
	}
	if h.lastError != nil {
		due = later(due, h.lastError.NotBefore)
	} else {
		// A new certificate with a short lifetime may be due for renewal immediately, so wait between two orders.
		due = later(due, h.ordered.Add(pause))
	}
	if !h.wanted() {
		due = h.nextRead(now, false)
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
	m.delayed.Set(h, later(due, now.Add(tick)))
}
