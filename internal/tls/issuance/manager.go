// Package issuance orders certificates for hosts from certificate authorities and renews them. It also reads from the
// shared storage the certificates that other replicas have ordered. It is not involved in TLS handshakes: the server
// fetches changed certificates from it.
package issuance

import (
	"context"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/delayqueue"
	"github.com/k8singress/k8singress/internal/process/turns"
)

// The maximum numbers of hosts that are processed at the same time by each kind of task. More orders than reads are
// allowed, because certificate authorities may be slow, while the storage should not be.
const (
	maxOrders   = 16
	maxReads    = 8
	maxARIPolls = 2
	// maxRenewals is the maximum number of concurrent renewals. It is separate from maxOrders, so that orders for new
	// names do not delay renewals.
	maxRenewals = 4
	// ordersPerNamespace is the maximum number of concurrent orders for one namespace. An order takes minutes if the
	// owner's DNS or web server does not respond, so half of maxOrders is kept for other namespaces.
	ordersPerNamespace = maxOrders / 2
)

// tick is the interval at which a Manager checks whether this replica is the leader, and whether a host has been
// without a certificate for too long.
const tick = time.Second

// Manager manages the certificates of all hosts that get them from issuers. It is safe for concurrent use.
type Manager struct {
	log     *zap.Logger
	metrics *metrics
	// retry is the delay after the first failure of a host.
	retry time.Duration
	// kick wakes up Run. changed is the channel that Changed returns.
	kick    chan struct{}
	changed chan struct{}

	mu    sync.Mutex
	setup *setup
	hosts map[string]*host
	// stored maps the name that a host has in storage keys to the host.
	stored map[string]*host
	// delayed holds the hosts whose certificate must be read from the storage at a later time.
	delayed *delayqueue.Queue[*host]
	// These queues hold hosts that wait for a task: reads for reading the certificate from the storage, orders for
	// ordering a certificate from an issuer, and ariPolls for querying the issuer for the renewal time (ARI).
	reads  *turns.Queue[*host]
	orders *turns.Queue[*host]
	// renewals holds the hosts that already have a certificate, which must be renewed.
	renewals *turns.Queue[*host]
	ariPolls *turns.Queue[*host]
	// fresh holds the hosts with a new certificate that Take has not yet returned.
	fresh map[string]*host
	// problematic holds all hosts that may have a problem to report.
	problematic map[string]*host
	// unread is the number of hosts whose certificate has not been looked up in the storage yet. The channel read is
	// closed while unread is zero.
	unread int
	read   chan struct{}
	leads  bool
	// swept is the time when the storage was last searched for obsolete records.
	swept time.Time
	ended bool
	pace  pace
	// careful is the time until which only one order is made at a time. It is set when a certificate authority has
	// reported a rate limit for the orders of all hosts.
	careful time.Time
	budgets budgets
}

// New returns a manager that does nothing until Run is called.
func New(log *zap.Logger) *Manager {
	m := &Manager{
		log: log, retry: firstRetry, kick: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		hosts: map[string]*host{}, stored: map[string]*host{}, fresh: map[string]*host{},
		problematic: map[string]*host{},
		orders:      turns.New[*host](maxOrders, ordersPerNamespace), reads: turns.New[*host](maxReads, maxReads),
		renewals: turns.New[*host](maxRenewals, maxRenewals/2), ariPolls: turns.New[*host](maxARIPolls, maxARIPolls),
		read: make(chan struct{}), delayed: delayqueue.New[*host](),
	}
	close(m.read)
	m.metrics = newMetrics(m)
	return m
}

// Configure creates the issuers of a new Caddy configuration. Running tasks finish with the old issuers. ctx must stay
// valid as long as the configuration is in use. If Configure returns an error, the old issuers stay in use.
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

// Want sets which hosts need a certificate. A host is removed if its value is nil or is a certificate that does not
// come from an issuer.
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

// wasRead records that the certificate of a host has been looked up in the storage.
func (m *Manager) wasRead(h *host) {
	if h.read {
		return
	}
	h.read = true
	if m.unread--; m.unread == 0 {
		close(m.read)
	}
}

// readSoon schedules that the certificate of a host is read from the storage as soon as possible, before any other task
// for the host. If a task is working on the host now, the certificate is read after this task.
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

// Read waits until the certificates of all hosts have been looked up in the storage once, or until ctx ends. It returns
// immediately if Configure has not been called.
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

// Changed returns a channel that receives a value after certificates or problems have changed.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

// wake makes Run check the queues.
func (m *Manager) wake() { signal(m.kick) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// onStorageEvent is called by the storage when this or another replica has changed the value of a key.
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

// mayBeChallenged reports whether this or another replica may be ordering a certificate for the host at the moment, so
// that a certificate authority may send a challenge. stored is the host's name in storage keys.
func (m *Manager) mayBeChallenged(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.stored[stored]
	return h != nil && (h.issued == nil || !h.issued.renewal.at.After(time.Now()))
}
