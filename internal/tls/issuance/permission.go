package issuance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/panics"
)

const (
	// maxAsks is the maximum number of concurrent calls of the permission module. Half of them may be for names of one
	// namespace. Clients choose the names, and may choose names for which the module is slow, so a few slow calls must
	// not delay other names.
	maxAsks = 128
	// askPatience is how long a name waits for the permission module. If the module takes longer, the name is denied.
	askPatience = 5 * time.Second
	// deniedFor is how long the permission module is not asked again about a name that it has denied.
	deniedFor = time.Minute
	// maxDenied is the maximum number of denied names that are remembered.
	maxDenied = 10_000
	// warnEvery is the minimum interval between two log messages about a permission module that fails.
	warnEvery = time.Minute
)

// permission decides for which names certificates may be ordered on demand.
type permission struct {
	module caddytls.OnDemandPermission
	// asks is the host of the URL that the module requests, without a final dot. It is empty if the module does not
	// request a URL.
	asks string
}

// newPermission loads a Caddy module in the namespace tls.permission. It returns nil if raw is nil.
func newPermission(ctx caddy.Context, raw json.RawMessage) (*permission, error) {
	if raw == nil {
		return nil, nil
	}
	value, err := loadInline(ctx, "tls.permission.", raw)
	if err != nil {
		return nil, fmt.Errorf("the permission module for certificates on demand: %w", err)
	}
	p := &permission{module: value.(caddytls.OnDemandPermission)}
	if byHTTP, ok := value.(*caddytls.PermissionByHTTP); ok {
		if u, err := url.Parse(caddy.NewReplacer().ReplaceAll(byHTTP.Endpoint, "")); err == nil {
			p.asks = strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
		}
	}
	return p, nil
}

// asksItself reports whether the permission module would connect to this name to decide about it. If this controller
// serves the name, the connection would wait for the decision.
func (p *permission) asksItself(name string) bool { return p.asks == name }

// beginAsks calls the permission module for as many names as the limit on concurrent calls allows.
func (m *Manager) beginAsks(ctx context.Context, running *panics.Group) {
	for a, ok := m.asks.Pop(); ok; a, ok = m.asks.Pop() {
		s := m.setup
		s.acquire()
		running.Go("issuance/permission", func() {
			defer m.kick.Send()
			defer s.release()
			// A call counts towards maxAsks until it ends, also after the name was denied.
			defer m.asked(a)
			m.ask(ctx, s, a.demand, running)
		})
	}
}

func (m *Manager) asked(a *ask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asks.Done(a)
}

// ask asks the permission module of s about a name, and returns when the call has ended. Caddy's module http does not
// end its request when the context ends.
func (m *Manager) ask(ctx context.Context, s *setup, d *demand, running *panics.Group) {
	patience, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	ended := make(chan error, 1)
	running.Go("issuance/permission", func() {
		ended <- panics.Run("issuance/permission", func() error { return s.permission.allows(patience, d.name) })
	})
	select {
	case err := <-ended:
		m.decide(ctx, s, d, err)
	case <-patience.Done():
		m.decide(ctx, s, d, patience.Err())
		<-ended //nolint:errcheck // The decision comes too late.
	case <-s.replaced:
		// Do not wait for the previous module, which may hang: the handshake has only handshakePatience.
		cancel()
		if !m.answered(s, d, false) {
			m.answerRequest(ctx, s, d)
		}
		<-ended //nolint:errcheck // The decision comes too late.
	}
}

// allows returns nil if the module allows a certificate for a name before ctx ends. p may be nil.
func (p *permission) allows(ctx context.Context, name string) error {
	if p == nil {
		return caddytls.ErrPermissionDenied
	}
	if err := p.module.CertificateAllowed(ctx, name); err != nil {
		return err
	}
	return ctx.Err()
}

// decide continues with a name after the permission module of s has returned err.
func (m *Manager) decide(ctx context.Context, s *setup, d *demand, err error) {
	if err != nil {
		m.logDenied(d.name, err)
	}
	if !m.answered(s, d, err == nil) {
		m.answerRequest(ctx, s, d)
	}
}

func (m *Manager) logDenied(name string, err error) {
	if !errors.Is(err, caddytls.ErrPermissionDenied) && m.mayWarn() {
		m.log.Warn("the permission module for certificates on demand has failed, and no certificate is requested",
			zap.String("host", name), zap.String("error", clean(err.Error())))
	} else {
		m.log.Debug("a certificate on demand was denied", zap.String("host", name), zap.Error(err))
	}
}

func (m *Manager) mayWarn() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.Sub(m.warned) < warnEvery {
		return false
	}
	m.warned = now
	return true
}

// answered is called when the permission module of s has decided about a name. It returns whether the name is still
// pending: the certificate is ordered or renewed now, or the module of a newer configuration must decide. A denied
// certificate is not renewed, but is used until it expires.
func (m *Manager) answered(s *setup, d *demand, allowed bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.demands.Get(d.name) == d
	if m.setup != nil && m.setup != s {
		if !known || !d.pending {
			return false
		}
		m.asks.Remove(d.ask)
		d.ask = &ask{d}
		m.asks.Push(d.origin.Namespace, d.ask, true)
		m.kick.Send()
		return true
	}
	origin, ok := s.onDemand(d.name)
	current := known && ok && origin == d.origin
	if !allowed {
		m.denied.add(d.name, time.Now())
	}
	switch h := m.hosts.Get(d.name); {
	case current && allowed && h == nil:
		m.addOnDemand(d)
	case current && allowed && h == d.host:
		h.since = d.since
		m.readSoon(h)
	case d.host == nil:
		m.dropDemand(d)
		return false
	default:
		m.settle(d)
		return false
	}
	return true
}

func (m *Manager) addOnDemand(d *demand) {
	h := newHost(d.name, d.origin)
	// Do not count the host as unread: a starting process does not wait for certificates on demand.
	h.demand, h.read = d, true
	d.host = h
	m.list(h)
	m.readSoon(h)
}

// denials remembers names that the permission module has denied. The zero value is empty.
type denials struct {
	// recent and older map names to the time until which they are denied. When recent has maxDenied/2 names, it becomes
	// older, and the names in older are forgotten.
	recent, older map[string]time.Time
}

func (d *denials) has(name string, now time.Time) bool {
	return now.Before(d.recent[name]) || now.Before(d.older[name])
}

func (d *denials) add(name string, now time.Time) {
	if d.recent == nil || len(d.recent) >= maxDenied/2 {
		d.recent, d.older = map[string]time.Time{}, d.recent
	}
	d.recent[name] = now.Add(deniedFor)
}
