// Package issuance asks certificate authorities for the certificates of hosts, keeps them fresh, and reads those that
// other replicas have got from the storage that all share. It never answers a handshake: the server takes what changed.
package issuance

import (
	"context"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/delayqueue"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/turns"
)

// How many hosts are worked on at once. A certificate authority may take its time; the storage should not.
const (
	maxOrders   = 16
	maxReads    = 8
	maxARIPolls = 2
	// maxRenewals are under way beside those orders, so that new names do not hold them up.
	maxRenewals = 4
	// ordersPerNamespace is how many orders one namespace may have under way. An order takes minutes where the DNS or the server of
	// its owner does not answer: the other places are kept free for other namespaces, later ones included.
	ordersPerNamespace = maxOrders / 2
)

// beat is how often a Manager checks whether this replica leads, and whether a host has waited for long.
const beat = time.Second

// Manager has the hosts whose certificates come from issuers. Its methods may be called from any goroutine.
type Manager struct {
	log     *zap.Logger
	metrics *metrics
	// retry is how long a host waits after its first failure.
	retry time.Duration
	// kick wakes Run; changed is Changed.
	kick    chan struct{}
	changed chan struct{}

	mu    sync.Mutex
	setup *setup
	hosts map[string]*host
	// stored finds a host by the name that its certificate has in the storage.
	stored map[string]*host
	// delayed are the hosts whose certificate is to be read at a later time.
	delayed *delayqueue.Queue[*host]
	// reads are the hosts whose certificate is to be read from the storage, orders the hosts whose certificate is to be ordered
	// from an issuer, and ariPolls the hosts whose issuer is to be asked for the time of the renewal (ARI).
	reads  *turns.Queue[*host]
	orders *turns.Queue[*host]
	// renewals are orders for hosts that have a certificate.
	renewals *turns.Queue[*host]
	ariPolls *turns.Queue[*host]
	// fresh are the hosts with a certificate that Take has not returned yet.
	fresh map[string]*host
	// problematic are the hosts that have a problem, or may have one.
	problematic map[string]*host
	// unread counts the hosts whose certificate has not been looked for yet; read is closed while there are none.
	unread int
	read   chan struct{}
	leads  bool
	// swept is when the storage was looked through last.
	swept time.Time
	ended bool
	pace  pace
	// careful is until when orders are made one by one, after an authority wanted none at all for a while.
	careful time.Time
	budgets budgets
}

// New returns a manager that does nothing before Run.
func New(log *zap.Logger) *Manager {
	m := &Manager{
		log: log, retry: firstRetry, kick: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		hosts: map[string]*host{}, stored: map[string]*host{}, fresh: map[string]*host{}, problematic: map[string]*host{},
		orders: turns.New[*host](maxOrders, ordersPerNamespace), reads: turns.New[*host](maxReads, maxReads),
		renewals: turns.New[*host](maxRenewals, maxRenewals/2), ariPolls: turns.New[*host](maxARIPolls, maxARIPolls),
		read: make(chan struct{}), delayed: delayqueue.New[*host](),
	}
	close(m.read)
	m.metrics = newMetrics(m)
	return m
}

// Configure makes the issuers anew under a Caddy configuration. What is under way ends with those before. ctx must
// outlive the configuration. Where the issuers cannot be made, those before stay.
func (m *Manager) Configure(ctx caddy.Context, o Options) error {
	next, err := newSetup(ctx, o, m)
	if err != nil {
		return err
	}
	m.mu.Lock()
	last := m.setup
	if m.setup = next; m.ended {
		m.setup, last = nil, next
	}
	for _, h := range m.hosts {
		h.forgetOtherIssuers(next.mark)
		m.readSoon(h)
	}
	m.mu.Unlock()
	if last != nil {
		last.release()
	}
	m.wake()
	return nil
}

// Want changes which hosts are to have a certificate; nil, or one that does not come from an issuer, is one that is not.
func (m *Manager) Want(changes map[string]*ir.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range changes {
		h := m.hosts[name]
		switch {
		case c == nil || !c.Automated:
			m.forget(h)
		case h == nil:
			m.add(newHost(name, c.Origin))
		default:
			h.origin = c.Origin
		}
	}
	m.wake()
}

func (m *Manager) add(h *host) {
	m.hosts[h.name], m.stored[h.stored] = h, h
	m.problematic[h.name] = h
	if m.unread++; m.unread == 1 {
		m.read = make(chan struct{})
	}
	m.readSoon(h)
}

func (m *Manager) forget(h *host) {
	if h == nil {
		return
	}
	h.gone = true
	m.delayed.Remove(h)
	for _, q := range []*turns.Queue[*host]{m.orders, m.renewals, m.reads, m.ariPolls} {
		q.Remove(h)
	}
	delete(m.hosts, h.name)
	delete(m.stored, h.stored)
	delete(m.fresh, h.name)
	delete(m.problematic, h.name)
	m.wasRead(h)
}

// wasRead notes that the certificate of a host has been looked for.
func (m *Manager) wasRead(h *host) {
	if h.read {
		return
	}
	h.read = true
	if m.unread--; m.unread == 0 {
		close(m.read)
	}
}

// readSoon has the certificate of a host read from the storage as soon as possible, before anything else that the host waits
// for: one task at a time works on a host.
func (m *Manager) readSoon(h *host) {
	if h.busy {
		h.again = true
		return
	}
	m.delayed.Remove(h)
	m.orders.Remove(h)
	m.renewals.Remove(h)
	m.ariPolls.Remove(h)
	m.reads.Push(h.origin.Namespace, h, true)
}

// Read waits until the certificates of all hosts have been looked for in the storage once, or ctx ends.
func (m *Manager) Read(ctx context.Context) {
	m.mu.Lock()
	read := m.read
	configured := m.setup != nil
	m.mu.Unlock()
	if !configured {
		return
	}
	select {
	case <-read:
	case <-ctx.Done():
	}
}

// Changed has a value when there are other certificates, or other problems.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

// wake makes Run check its queues.
func (m *Manager) wake() { signal(m.kick) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// onStorageEvent is called by the storage when the value of a key has changed, on any replica.
func (m *Manager) onStorageEvent(key string) {
	name, ok := hostOf(key)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.stored[name]; h != nil && !h.ordering {
		m.readSoon(h)
		m.wake()
	}
}

// mayBeChallenged returns whether a replica may be ordering the certificate of a host at this moment.
func (m *Manager) mayBeChallenged(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.stored[stored]
	return h != nil && (h.issued == nil || !h.issued.renewal.at.After(time.Now()))
}
