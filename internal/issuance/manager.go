// Package issuance asks certificate authorities for the certificates of hosts, keeps them fresh, and reads those that
// other replicas have got from the storage that all share. It never answers a handshake: who serves takes what changed.
package issuance

import (
	"context"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/ir"
)

// How many hosts are worked on at once. A certificate authority may take its time; the storage should not.
const (
	maxAsking  = 16
	maxLooking = 8
	maxPolling = 2
	// askingShare is how many orders one namespace may have under way. An order hangs for minutes where its owner's DNS or
	// server does: the rest is for the others, and is kept free for those that come later, too.
	askingShare = maxAsking / 2
)

// beat is how often a Manager looks whether this replica leads, and whether somebody has waited for long.
const beat = time.Second

// Manager has the hosts whose certificates come from issuers. Its methods may be called from any goroutine.
type Manager struct {
	log     *zap.Logger
	metrics *metrics
	// retry is how long a host waits after its first failure.
	retry time.Duration
	// kick wakes Run; changed wakes who serves.
	kick    chan struct{}
	changed chan struct{}

	mu    sync.Mutex
	setup *setup
	hosts map[string]*host
	// stored finds a host by the name that its certificate has in the storage.
	stored map[string]*host
	agenda agenda
	// asks are the hosts for which an issuer is to be asked; looks those whose certificate is to be read from the storage;
	// polls those whose issuer is asked when it wants the renewal.
	asks  *queue
	looks *queue
	polls *queue
	// fresh are the hosts with a certificate that nobody has taken yet.
	fresh map[string]*host
	// troubled are the hosts that there may be something to say of.
	troubled map[string]*host
	// unread counts the hosts whose certificate has not been looked for yet; read is closed while there are none.
	unread int
	read   chan struct{}
	leads  bool
	// swept is when the storage was looked through last.
	swept time.Time
	ended bool
	pace  pace
}

// New returns a manager that does nothing before Run.
func New(log *zap.Logger) *Manager {
	m := &Manager{
		log: log, retry: firstRetry, kick: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		hosts: map[string]*host{}, stored: map[string]*host{}, fresh: map[string]*host{}, troubled: map[string]*host{},
		asks: newQueue(maxAsking, askingShare), looks: newQueue(maxLooking, maxLooking), polls: newQueue(maxPolling, maxPolling),
		read: make(chan struct{}),
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
		h.meet(next.mark)
		m.look(h)
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
	m.troubled[h.name] = h
	if m.unread++; m.unread == 1 {
		m.read = make(chan struct{})
	}
	m.look(h)
}

func (m *Manager) forget(h *host) {
	if h == nil {
		return
	}
	h.gone = true
	m.agenda.drop(h)
	for _, q := range []*queue{m.asks, m.looks, m.polls} {
		q.drop(h)
	}
	delete(m.hosts, h.name)
	delete(m.stored, h.stored)
	delete(m.fresh, h.name)
	delete(m.troubled, h.name)
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

// look has the certificate of a host read from the storage as soon as may be. What else the host waits for waits until then:
// only one works on a host at a time.
func (m *Manager) look(h *host) {
	if h.busy {
		h.again = true
		return
	}
	m.agenda.drop(h)
	m.asks.drop(h)
	m.polls.drop(h)
	m.looks.push(h, true)
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

// Changed wakes who serves: there are other certificates, or something else to say of a host.
func (m *Manager) Changed() <-chan struct{} { return m.changed }

// wake makes Run look what there is to do.
func (m *Manager) wake() { signal(m.kick) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// heard is called by the storage when the value of a key has changed, on any replica.
func (m *Manager) heard(key string) {
	name, ok := hostOf(key)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if h := m.stored[name]; h != nil && !h.asking {
		m.look(h)
		m.wake()
	}
}

// challenged says whether some replica may be asking for the certificate of a host at this moment.
func (m *Manager) challenged(stored string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.stored[stored]
	return h != nil && (h.issued == nil || !h.issued.renewal.at.After(time.Now()))
}
