package issuance

import (
	"context"
	"crypto/tls"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
)

const (
	// maxOnDemand is the maximum number of names with certificates on demand in memory. The least recently used names
	// are forgotten first. Their certificates stay in the storage, and are read again when they are needed.
	maxOnDemand = 20_000
	// maxPending is the maximum number of names whose certificates are on order at the same time, or for which the
	// permission module has not responded yet. pendingPerNamespace is the maximum for the names of one namespace.
	maxPending          = 1000
	pendingPerNamespace = maxPending / 2
	// handshakePatience is how long the handshakes for a name wait for its certificate. It is shorter than the maximum
	// duration of a handshake, so that the clients get the default certificate instead of an error.
	handshakePatience = 9 * time.Second
	// maxIdle is how long a name is kept in memory after its last handshake.
	maxIdle = 24 * time.Hour
	// maxHandedOver is how long this replica waits for the leader to order a certificate.
	maxHandedOver = 10 * time.Minute
)

// demand is a name whose certificate is ordered on demand, which is during a TLS handshake. All fields except issued
// and used are protected by the manager's mutex.
type demand struct {
	name   string
	origin ir.Ref
	// host is nil until the permission module has allowed the name.
	host *host
	// issued is the certificate for handshakes, or nil. used is the time of the last handshake, in Unix seconds.
	issued atomic.Pointer[issued]
	used   atomic.Int64

	// pending is true while the certificate is ordered or renewed, which includes asking the permission module. since
	// is the time when this began. done is closed when the handshakes for the name need not wait any longer; released
	// is then true.
	pending  bool
	since    time.Time
	done     chan struct{}
	released bool
	// handedOver is true if this replica has stored a request for the leader. requested is true if this replica is the
	// leader and has found such a request, which it must delete in the end.
	handedOver, requested bool
	// ask is the name's value in the queue for the permission module of the current configuration.
	ask *ask
}

// ask is a value in the queue of names about which the permission module must be asked. While a call of the module of a
// previous configuration has not ended, its ask counts towards maxAsks, and the demand has another ask.
type ask struct{ *demand }

func newDemand(name string) *demand {
	d := &demand{name: name}
	d.ask = &ask{d}
	return d
}

// OnDemand returns the certificate for the server name of a TLS handshake, if an object requests certificates on demand
// for this name. If there is no certificate yet, OnDemand orders one, and waits until it is issued, but at most for
// handshakePatience and until ctx ends. It returns nil if there is no certificate in the end.
func (m *Manager) OnDemand(ctx context.Context, server string) *tls.Certificate {
	name, now := strings.ToLower(strings.TrimSuffix(server, ".")), time.Now()
	var held *tls.Certificate
	if value, ok := m.onDemand.Load(name); ok {
		d := value.(*demand)
		d.used.Store(now.Unix())
		if held = d.certificate(now); held != nil && now.Before(d.issued.Load().renewal.at) {
			return held
		}
	}
	m.mu.Lock()
	d, _ := m.demand(name, now)
	var done <-chan struct{}
	var rest time.Duration
	if d != nil {
		done, rest = d.done, time.Until(d.since.Add(handshakePatience))
	}
	m.mu.Unlock()
	if held != nil || d == nil || rest <= 0 {
		return held
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-ctx.Done():
	}
	return d.certificate(time.Now())
}

// certificate returns the certificate for handshakes. It returns nil if there is no certificate, or if it has expired.
func (d *demand) certificate(now time.Time) *tls.Certificate {
	if c := d.issued.Load(); c != nil && now.Before(c.pair.Leaf.NotAfter) {
		return c.pair
	}
	return nil
}

// isFresh reports whether the certificate need not be renewed yet. It returns false if there is no certificate.
func (i *issued) isFresh(now time.Time) bool { return i != nil && now.Before(i.renewal.at) }

// demand begins to order or renew the certificate for a name on demand, unless this is already in progress. It returns
// nil if no certificate is ordered now: for example, the permission module has denied the name, or the last order has
// failed. full is then true if this is only because too many other names are pending. The caller holds the manager's
// mutex.
func (m *Manager) demand(name string, now time.Time) (d *demand, full bool) {
	d = m.demands.Get(name)
	if d != nil && d.pending {
		return d, false
	}
	origin, ok := m.demandedBy(name, now)
	switch {
	case !ok:
		return nil, false
	case len(m.pending) >= maxPending, m.pendingIn[origin.Namespace] >= pendingPerNamespace:
		return nil, true
	case d == nil:
		m.makeRoom()
		d = newDemand(name)
		m.demands.Set(name, d)
	}
	d.origin = origin
	d.used.Store(now.Unix())
	d.pending, d.since, d.done, d.released, d.handedOver = true, now, make(chan struct{}), false, false
	m.pending[d] = true
	m.pendingIn[origin.Namespace]++
	m.asks.Push(origin.Namespace, d.ask, true)
	m.kick.Send()
	return d, false
}

// demandedBy returns the object that requests a certificate on demand for a name. It returns false if no certificate
// may be ordered for the name now.
func (m *Manager) demandedBy(name string, now time.Time) (ir.Ref, bool) {
	s, h := m.setup, m.hosts.Get(name)
	switch {
	case s == nil || s.permission == nil || s.permission.asksItself(name):
	case h != nil && (h.demand == nil || h.issued.isFresh(now)):
	case h != nil && h.lastError != nil && now.Before(h.lastError.NotBefore):
	case m.denied.has(name, now) || len(validation.IsDNS1123Subdomain(name)) > 0:
	default:
		return s.onDemand(name)
	}
	return ir.Ref{}, false
}

// makeRoom forgets a name if there are too many. It looks at a few random names, and forgets the one whose last
// handshake was first.
func (m *Manager) makeRoom() {
	if m.demands.Len() < maxOnDemand {
		return
	}
	var oldest *demand
	tries := 0
	for d := range m.demands.Values() {
		if tries++; !d.pending && (oldest == nil || d.used.Load() < oldest.used.Load()) {
			oldest = d
		}
		if tries >= 64 && oldest != nil {
			break
		}
	}
	if oldest != nil {
		m.forgetDemand(oldest)
	}
}

// release makes the handshakes for the name stop waiting.
func (d *demand) release() {
	if !d.released {
		d.released = true
		close(d.done)
	}
}

// settle is called when ordering or renewing the certificate for a name has ended, with or without success.
func (m *Manager) settle(d *demand) {
	if !d.pending {
		return
	}
	d.pending = false
	d.release()
	delete(m.pending, d)
	if m.pendingIn[d.origin.Namespace]--; m.pendingIn[d.origin.Namespace] == 0 {
		delete(m.pendingIn, d.origin.Namespace)
	}
}

func (m *Manager) forgetDemand(d *demand) {
	if d.host != nil {
		m.forget(d.host)
		return
	}
	m.dropDemand(d)
}

func (m *Manager) dropDemand(d *demand) {
	m.asks.Remove(d.ask)
	m.settle(d)
	if m.demands.Get(d.name) == d {
		m.demands.Delete(d.name)
		m.onDemand.Delete(d.name)
	}
}

// supply makes the certificate of a host available to handshakes, if it is ordered on demand.
func (m *Manager) supply(h *host, now time.Time) {
	d := h.demand
	if d == nil {
		return
	}
	d.issued.Store(h.issued)
	m.onDemand.Store(d.name, d)
	switch {
	case h.issued.isFresh(now):
		m.settle(d)
	case d.certificate(now) != nil && d.pending:
		d.release()
	}
}

// RecheckOnDemand forgets the names for which no object requests certificates on demand any more. It must be called
// after the hosts in the configuration have changed.
func (m *Manager) RecheckOnDemand() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, d := range m.demands.All() {
		if m.setup == nil || m.setup.permission == nil {
			m.forgetDemand(d)
		} else if origin, ok := m.setup.onDemand(name); !ok || origin != d.origin {
			m.forgetDemand(d)
		}
	}
}

// forgetIdle forgets names without handshakes, and stops waiting for the leader if it does not respond. It is called
// regularly.
func (m *Manager) forgetIdle(now time.Time) {
	for d := range m.demands.Values() {
		switch {
		case !d.pending && now.Sub(time.Unix(d.used.Load(), 0)) >= maxIdle:
			m.forgetDemand(d)
		case d.pending && !m.leads && d.host != nil && now.Sub(d.since) >= maxHandedOver:
			m.fail(d.host, &failure{Reason: "the replica that orders certificates does not respond",
				NotBefore: now.Add(m.retry)})
		}
	}
}
