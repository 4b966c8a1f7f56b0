// Package issuance orders certificates for hosts from certificate authorities and renews them. Only one replica, the
// leader, orders certificates; the others read them from the shared storage. The package is not involved in TLS
// handshakes: the server takes new certificates from the Manager.
package issuance

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/process/delayqueue"
	"github.com/k8singress/k8singress/internal/process/turns"
	"github.com/k8singress/k8singress/internal/process/wake"
)

// The maximum numbers of concurrent tasks of each kind. More orders than reads of the storage are allowed, because
// certificate authorities may be slow, while the storage should be fast.
const (
	maxOrders   = 16
	maxReads    = 8
	maxARIPolls = 2
	// maxRenewals is the maximum number of concurrent renewals. It is separate from maxOrders, so that orders for new
	// names do not delay renewals.
	maxRenewals = 4
	// ordersPerNamespace is the maximum number of concurrent orders for one namespace. An order takes minutes if the
	// DNS or web server of the host does not respond. This limit ensures that one namespace cannot occupy all
	// concurrent orders.
	ordersPerNamespace = maxOrders / 2
)

// tick is the interval at which a Manager checks whether this replica is the leader, and whether a host has waited so
// long for its certificate that Problems must report the host.
const tick = time.Second

// Manager orders, renews and loads the certificates of all hosts that use an issuer. It is safe for concurrent use.
type Manager struct {
	log     *zap.Logger
	metrics *metrics
	// retry is the delay between the first failed order for a host and the next attempt.
	retry time.Duration
	// Sending to kick makes Run look for due tasks. changed is the channel that the method Changed returns.
	kick    wake.Signal
	changed wake.Signal

	mu    sync.Mutex
	setup *setup
	hosts shrinking.Map[string, *host]
	// stored maps the name that storage keys use for a host (host.stored) to the host. It contains all hosts.
	stored shrinking.Map[string, *host]
	// delayed holds the hosts for which no task is due yet, ordered by the time of their next task. When the task is
	// due, the host's certificate is first read from the storage.
	delayed *delayqueue.Queue[*host]
	// The following queues hold the hosts for which a task is due. For hosts in reads, the certificate must be read
	// from the storage; in orders, a first certificate must be ordered; in renewals, the certificate must be renewed;
	// and in ariPolls, the certificate authority must be asked for the renewal time (ARI).
	reads  *turns.Queue[*host]
	orders *turns.Queue[*host]
	// renewals is the queue of hosts whose existing certificate must be renewed.
	renewals *turns.Queue[*host]
	ariPolls *turns.Queue[*host]
	// fresh holds the hosts with a new certificate that Take has not returned yet.
	fresh shrinking.Map[string, *host]
	// problematic holds all hosts for which Problems may have to report a problem.
	problematic shrinking.Map[string, *host]
	// unread is the number of hosts whose certificate has not been looked up in the storage yet. When unread drops to
	// zero, the channel in the field read is closed. A new channel replaces it when a host is added after that.
	unread int
	read   chan struct{}
	leads  bool
	// swept is the time when the storage was last searched for obsolete records.
	swept time.Time
	ended bool
	pace  pace
	// careful is the time until which only one order is made at a time, because a certificate authority has reported a
	// rate limit for the orders of all hosts.
	careful time.Time
	budgets budgets

	// demands holds the names whose certificates are ordered on demand. onDemand maps each of these names that has a
	// certificate to the same *demand, so that handshakes need no lock.
	demands  shrinking.Map[string, *demand]
	onDemand sync.Map
	// pending is the set of names in demands whose field pending is true. pendingIn is their number per namespace. asks
	// is the queue of the names about which the permission module must be asked. denied holds the names that it has
	// denied. warned is the time of the last warning about the module.
	pending   map[*demand]bool
	pendingIn map[string]int
	asks      *turns.Queue[*ask]
	denied    denials
	warned    time.Time
	// requestsChanged is true if another replica may have stored a request for a certificate. searched is the time when
	// the storage was last searched for requests. searching is true during a search. tidied is the time when idle names
	// were last removed from demands.
	requestsChanged, searching bool
	searched, tidied           time.Time
}

// New returns a manager that does nothing until Run is called.
func New(log *zap.Logger) *Manager {
	m := &Manager{
		log: log, retry: firstRetry, kick: wake.New(), changed: wake.New(),
		orders: turns.New[*host](maxOrders, ordersPerNamespace), reads: turns.New[*host](maxReads, maxReads),
		renewals: turns.New[*host](maxRenewals, maxRenewals/2), ariPolls: turns.New[*host](maxARIPolls, maxARIPolls),
		read: make(chan struct{}), delayed: delayqueue.New[*host](),
		pending: map[*demand]bool{}, pendingIn: map[string]int{},
		asks: turns.New[*ask](maxAsks, maxAsks/2),
	}
	close(m.read)
	m.metrics = newMetrics(m)
	return m
}

// Configure creates the issuers of a new Caddy configuration. Running tasks finish with the previous issuers. ctx must
// stay valid as long as the configuration is in use. If Configure returns an error, the previous issuers stay in use.
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
	for h := range m.hosts.Values() {
		h.forgetOtherIssuers(next.mark)
		m.readSoon(h)
	}
	m.denied, m.requestsChanged = denials{}, true
	m.mu.Unlock()
	m.RecheckOnDemand()
	if last != nil {
		close(last.replaced)
		last.release()
	}
	m.kick.Send()
	return nil
}

// Want sets which hosts need a certificate from an issuer. The keys of changes are host names. A host is removed if its
// value is nil, or is a certificate that does not come from an issuer.
func (m *Manager) Want(changes map[string]*ir.Certificate) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, c := range changes {
		h := m.hosts.Get(name)
		switch {
		case c == nil || !c.Automated:
			m.forget(h)
		case h == nil || h.demand != nil:
			m.forget(h)
			m.add(newHost(name, c.Origin))
		default:
			h.origin = c.Origin
		}
	}
	m.kick.Send()
}

func (m *Manager) add(h *host) {
	m.list(h)
	if m.unread++; m.unread == 1 {
		m.read = make(chan struct{})
	}
	m.readSoon(h)
}

// list adds a host to the indexes of all hosts.
func (m *Manager) list(h *host) {
	m.hosts.Set(h.name, h)
	m.stored.Set(h.stored, h)
	m.problematic.Set(h.name, h)
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
	m.hosts.Delete(h.name)
	m.stored.Delete(h.stored)
	m.fresh.Delete(h.name)
	m.problematic.Delete(h.name)
	m.wasRead(h)
	if h.demand != nil {
		m.dropDemand(h.demand)
	}
}

// wasRead records that the storage has been searched for the certificate of a host.
func (m *Manager) wasRead(h *host) {
	if h.read {
		return
	}
	h.read = true
	if m.unread--; m.unread == 0 {
		close(m.read)
	}
}

// readSoon makes Run read the host's certificate from the storage next. If a task is running for the host, the
// certificate is read when this task has ended.
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

// Read waits until the storage has been searched for the certificates of all hosts, or until ctx ends. If Configure has
// not been called, it returns immediately.
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

// Changed returns a channel that receives a value when Take or Problems would return something new.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

// onStorageEvent is called by the storage when this or another replica has changed the value of a key.
func (m *Manager) onStorageEvent(key string) {
	name, ok := hostOf(key)
	requested, isRequest := strings.CutPrefix(key, requestsFolder)
	if !ok && !isRequest {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if isRequest {
		name, m.requestsChanged = strings.TrimSuffix(requested, ".json"), true
		m.kick.Send()
	}
	if h := m.stored.Get(name); h != nil && !h.ordering && (!isRequest || h.demand.awaitsLeader()) {
		m.readSoon(h)
		m.kick.Send()
	}
}

// mayBeChallenged reports whether a certificate authority may be sending an ACME challenge for the host now, because
// this or another replica is ordering a certificate. stored is the host's name in storage keys.
func (m *Manager) mayBeChallenged(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.stored.Get(stored)
	return h != nil && (h.issued == nil || !h.issued.renewal.at.After(time.Now()))
}
