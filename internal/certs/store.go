package certs

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// Store knows which host has the certificate of which Secret. Its methods that change it are for one goroutine;
// GetCertificate is for all.
type Store struct {
	// hosts has a *host for each name; "" is the default certificate.
	hosts sync.Map
	// secrets are those that a host names.
	secrets map[string]*secret
	// selfSigned answers where there is nothing else.
	selfSigned func() *tls.Certificate
}

// host is the entry for one name. The Secret stays the same value for as long as the host names it.
type host struct {
	secret *secret
	origin string
	// before goes on to be shown until the contents of the Secret are told. It is nil for a Secret that is known.
	before *secret
}

// secret is one Secret that at least one host names.
type secret struct {
	name  string
	hosts map[string]struct{}
	// shown is nil before the first good pair.
	shown atomic.Pointer[shown]
	// told says that SetSecret was called, if only to say that there is no such Secret.
	told bool
	// cert and key are what was parsed last, problem what came of it.
	cert, key []byte
	problem   error
}

// shown is the last good pair of a Secret.
type shown struct {
	pair *tls.Certificate
	// old says that the Secret holds something else by now, or is gone.
	old bool
}

// NewStore returns a store that knows no host, and answers with a self-signed certificate.
func NewStore() *Store {
	return &Store{secrets: map[string]*secret{}, selfSigned: sync.OnceValue(makeSelfSigned)}
}

// Update changes which Secret is for which host; nil removes a host. The contents of a Secret that no host named before
// come by SetSecret after this.
func (s *Store) Update(changes map[string]*document.Certificate) {
	for name, c := range changes {
		if c == nil {
			s.forget(name)
			continue
		}
		s.use(name, c)
	}
	maps.DeleteFunc(s.secrets, func(_ string, secret *secret) bool { return len(changes) > 0 && len(secret.hosts) == 0 })
}

// use replaces the entry of a host at once, so that no handshake misses it.
func (s *Store) use(name string, c *document.Certificate) {
	used := s.secrets[c.Secret]
	if used == nil {
		used = &secret{name: c.Secret, hosts: map[string]struct{}{}}
		s.secrets[c.Secret] = used
	}
	entry := &host{secret: used, origin: c.Origin}
	if value, ok := s.hosts.Load(name); ok {
		old := value.(*host)
		delete(old.secret.hosts, name)
		if !used.told {
			entry.before = old.known()
		}
	}
	used.hosts[name] = struct{}{}
	s.hosts.Store(name, entry)
}

func (s *Store) forget(name string) {
	if old, ok := s.hosts.LoadAndDelete(name); ok {
		delete(old.(*host).secret.hosts, name)
	}
}

// SetSecret tells the contents of a Secret, or that there is none. It does nothing for a Secret that no host names. With
// contents that are no good, or none, the last good certificate goes on to be shown for as long as it is valid.
func (s *Store) SetSecret(namespace, name string, data map[string][]byte, present bool) {
	of := s.secrets[namespace+"/"+name]
	if of == nil {
		return
	}
	defer s.tell(of)
	if !present {
		// That it is missing is said by the translation.
		of.cert, of.key, of.problem = nil, nil, nil
		of.age()
		return
	}
	cert, key := data[certKey], data[privateKey]
	if of.cert != nil && bytes.Equal(of.cert, cert) && bytes.Equal(of.key, key) {
		return
	}
	pair, err := Parse(cert, key)
	of.cert, of.key, of.problem = append([]byte{}, cert...), append([]byte{}, key...), err
	if err != nil {
		of.age()
		return
	}
	of.shown.Store(&shown{pair: pair})
}

// tell ends the time in which the hosts of a Secret show the one before it.
func (s *Store) tell(of *secret) {
	if of.told {
		return
	}
	of.told = true
	for name := range of.hosts {
		value, _ := s.hosts.Load(name)
		s.hosts.Store(name, &host{secret: of, origin: value.(*host).origin})
	}
}

// age notes that the last good pair is no longer what the Secret holds.
func (s *secret) age() {
	if last := s.shown.Load(); last != nil {
		s.shown.Store(&shown{pair: last.pair, old: true})
	}
}

// Problems returns a verdict for each object that names a Secret which is no good.
func (s *Store) Problems() []*report.Verdict {
	var all []*report.Verdict
	for _, name := range slices.Sorted(s.bad()) {
		of := s.secrets[name]
		said := map[string]bool{}
		for _, h := range slices.Sorted(maps.Keys(of.hosts)) {
			entry, _ := s.hosts.Load(h)
			origin := entry.(*host).origin
			if !said[origin] {
				said[origin] = true
				all = append(all, of.verdict(origin))
			}
		}
	}
	return all
}

// bad yields the names of the Secrets that are no good, which are few.
func (s *Store) bad() iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, of := range s.secrets {
			if of.problem != nil && !yield(name) {
				return
			}
		}
	}
}

func (s *secret) verdict(origin string) *report.Verdict {
	instead := "the default certificate is shown"
	if s.good() != nil {
		instead = "the last good certificate is shown"
	}
	return &report.Verdict{Object: ir.ParseRef(origin), Problems: []report.Problem{{
		Severity: report.Error, Reason: report.InvalidTLSSecret,
		Message: fmt.Sprintf("Secret %s: %v; %s until it is mended", s.name, s.problem, instead),
	}}}
}

// known returns the Secret that the host shows.
func (h *host) known() *secret {
	if h.before != nil {
		return h.before
	}
	return h.secret
}

// good returns what may be shown, or nil. What the Secret holds is shown even when it has expired, as ingress-nginx does.
func (s *secret) good() *tls.Certificate {
	last := s.shown.Load()
	if last == nil || last.old && time.Now().After(last.pair.Leaf.NotAfter) {
		return nil
	}
	return last.pair
}
