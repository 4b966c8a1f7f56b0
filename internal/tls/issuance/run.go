package issuance

import (
	"context"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/process/panics"
	"github.com/k8singress/k8singress/internal/process/turns"
)

// Run runs the manager until ctx ends, and then waits for running tasks. Other replicas with the same storage also call
// Run; leads reports whether this replica orders certificates.
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

// end releases the current setup. The manager has no setup afterwards.
func (m *Manager) end() {
	m.mu.Lock()
	last := m.setup
	m.setup, m.ended = nil, true
	m.mu.Unlock()
	if last != nil {
		last.release()
	}
}

// dispatch starts the due tasks for which there are free slots. It returns the maximum time until the next call.
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
	m.begin(ctx, running, m.reads, m.fetch)
	m.begin(ctx, running, m.ariPolls, m.poll)
	rest := m.beginOrders(ctx, running, now)
	if next, ok := m.delayed.Next(); ok {
		rest = min(rest, max(next.Sub(now), 0))
	}
	return rest
}

// setLeads sets whether this replica orders certificates. A replica that becomes the leader first reads the
// certificates that other replicas have ordered.
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
		// This replica orders from now on and will find out the errors itself.
		h.lastError = nil
		if h.issued == nil || !h.issued.renewal.at.After(time.Now().Add(calm)) {
			m.readSoon(h)
		}
	}
}

// beginSweep starts a sweep of the storage if one is due, on the leader only and after all hosts have been read.
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

// task performs work for a host. It runs without the lock.
type task func(ctx context.Context, s *setup, h *host)

func (m *Manager) begin(ctx context.Context, running *panics.Group, q *turns.Queue[*host], do task) {
	for h, ok := q.Pop(); ok; h, ok = q.Pop() {
		m.start(ctx, running, q, h, do)
	}
}

// beginOrders starts as many orders as the rate limit allows now, renewals first. It returns how long to wait at most
// before the next call.
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

// mayOrder reports whether another order may start. After an authority has rejected orders for all hosts, possibly
// because of the orders of one namespace, orders are made one at a time for a while. The next one starts only after all
// waiting hosts are in their queues, so that the namespaces share the remaining orders fairly.
func (m *Manager) mayOrder(now time.Time) bool {
	return !now.Before(m.careful) || m.orders.Running()+m.renewals.Running()+m.reads.Running()+m.reads.Len() == 0
}

// carefulFor is how long orders are made one at a time after an authority's pause has ended.
const pacedAfterStart = time.Hour

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

// finish removes a host from the task that has ended. It also runs after a panic.
func (m *Manager) finish(q *turns.Queue[*host], h *host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q.Done(h)
	m.next(h)
}

// next queues a host for the next task after one has ended.
func (m *Manager) next(h *host) {
	ordered := h.ordering
	h.busy, h.ordering = false, false
	switch {
	case h.gone:
	case h.again || ordered && h.lastError == nil:
		// Read the certificate back from the storage, as other replicas do.
		h.again = false
		m.readSoon(h)
	default:
		m.plan(h, time.Now())
	}
}

// plan puts a host into the queue in which it has to wait.
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
		// A new certificate may be due again immediately; order at most once per renewCheck.
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
	m.delayed.Set(h, later(due, now.Add(tick)))
}
