// Package certs holds the certificates that are shown to TLS clients: parsed once, kept while they are good, and found by
// the name that a client asks for.
package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

// Store holds the certificates of hosts, which come from Secrets or from issuers. The methods that change it are for one
// goroutine; GetCertificate, Find, Own and Ends are for all.
type Store struct {
	// hosts has a *host for each name; "" is the default certificate.
	hosts sync.Map
	// secrets are those that a host or a listener names.
	secrets map[source]*secret
	// listeners has a []*secret for each listener with certificates of its own, by name.
	listeners sync.Map
	// selfSigned answers where there is nothing else.
	selfSigned func() *tls.Certificate
	// ends has, by its source, when the certificate ends that is shown.
	ends sync.Map
	// asked is when Problems was called last.
	asked time.Time
}

// host is the entry for one name. The Secret stays the same value for as long as the host names it.
type host struct {
	secret *secret
	// second is nil but for a host with two Secrets.
	second *secret
	origin ir.Origin
	// before goes on to be shown until the contents of the Secret are told, or until it has expired. It is nil for a Secret that
	// is known.
	before *secret
}

// secret is one Secret that at least one host or listener names, or the certificate of an issuer for a host.
type secret struct {
	source source
	hosts  map[string]struct{}
	// listeners are the origins of the listeners that name it, by their names. It is nil where there are none.
	listeners map[string]ir.Ref
	// strays are those of the hosts that the certificate in the Secret is not for. It is nil where there are none.
	strays map[string]struct{}
	// valid is that of the certificate that is shown. It stands here too because Problems looks at it for each Secret.
	valid tlssecret.Period
	// outdated says that the certificate is no longer what the Secret holds.
	outdated bool
	// shown is nil before the first good pair.
	shown atomic.Pointer[shown]
	// known says that SetSecret was called, if only to say that there is no such Secret.
	known bool
	// missing says that there is no such Secret.
	missing bool
	// parsed says that contents were parsed, sum is the sum of the last ones, and problem what came of them.
	parsed  bool
	sum     [sha256.Size]byte
	problem error
}

// shown is the last good pair of a Secret.
type shown struct {
	pair  *tls.Certificate
	names tlssecret.Names
	// old says that the Secret holds something else by now, or is gone.
	old bool
}

// NewStore returns a store that knows no host, and answers with a self-signed certificate.
func NewStore() *Store {
	return &Store{secrets: map[source]*secret{}, selfSigned: sync.OnceValue(makeSelfSigned)}
}

// Update changes which Secret is for which host; nil removes a host. The contents of a Secret that no host named before
// come by SetSecret after this.
func (s *Store) Update(changes map[string]*ir.Certificate) {
	for name, c := range changes {
		if c == nil {
			s.forget(name)
			continue
		}
		s.use(name, c)
	}
	if len(changes) > 0 {
		s.forgetUnused()
	}
}

func (s *Store) forgetUnused() {
	maps.DeleteFunc(s.secrets, func(from source, secret *secret) bool {
		unused := len(secret.hosts) == 0 && len(secret.listeners) == 0
		if unused {
			s.ends.Delete(from)
		}
		return unused
	})
}

// use replaces the entry of a host at once, so that no handshake misses it.
func (s *Store) use(name string, c *ir.Certificate) {
	entry := &host{secret: s.named(sourceOf(name, c)), origin: c.Origin}
	if !c.SecondSecret.IsZero() {
		entry.second = s.named(source{secret: c.SecondSecret})
	}
	if value, ok := s.hosts.Load(name); ok {
		old := value.(*host)
		old.drop(name)
		if !entry.secret.known {
			entry.before = old.known()
		}
	}
	entry.secret.add(name)
	if entry.second != nil {
		entry.second.add(name)
	}
	s.hosts.Store(name, entry)
}

// named returns the secret of a source, new if no host has named it yet.
func (s *Store) named(from source) *secret {
	used := s.secrets[from]
	if used == nil {
		used = &secret{source: from, hosts: map[string]struct{}{}}
		s.secrets[from] = used
	}
	return used
}

func (s *Store) forget(name string) {
	if old, ok := s.hosts.LoadAndDelete(name); ok {
		old.(*host).drop(name)
	}
}

// drop says that a name no longer has the Secrets of its entry.
func (h *host) drop(name string) {
	h.secret.drop(name)
	if h.second != nil {
		h.second.drop(name)
	}
}

func (s *secret) add(name string) {
	s.hosts[name] = struct{}{}
	s.judge(name)
}

func (s *secret) drop(name string) {
	delete(s.hosts, name)
	s.pardon(name)
}

func (s *secret) pardon(name string) {
	if delete(s.strays, name); len(s.strays) == 0 {
		s.strays = nil
	}
}

// judge notes whether the certificate in the Secret is for the host. The default one need not be for any.
func (s *secret) judge(name string) {
	last := s.shown.Load()
	if name == "" || last == nil || last.old || last.names.Cover(name) {
		s.pardon(name)
		return
	}
	if s.strays == nil {
		s.strays = map[string]struct{}{}
	}
	s.strays[name] = struct{}{}
}

// SetSecret sets the contents of a Secret; present is false for a Secret that does not exist. It does nothing for a Secret
// that no host names. With contents that are no good, or none, the last good certificate goes on to be shown for as long
// as it is valid.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	of := s.secrets[source{secret: name}]
	if of == nil {
		return
	}
	defer s.takeOver(of)
	if of.missing = !present; of.missing {
		of.parsed, of.problem = false, nil
		of.age()
		return
	}
	cert, key := data[tlssecret.CertificateKey], data[tlssecret.PrivateKey]
	sum := tlssecret.Sum(cert, key)
	if of.parsed && of.sum == sum {
		return
	}
	pair, err := tlssecret.Parse(cert, key)
	of.parsed, of.sum, of.problem = true, sum, err
	if err != nil {
		of.age()
		return
	}
	of.show(&shown{pair: pair, names: tlssecret.NamesOf(pair.Leaf)})
	s.ends.Store(of.source, pair.Leaf.NotAfter)
}

// takeOver ends the time in which the hosts of a Secret show the one before it.
func (s *Store) takeOver(of *secret) {
	if of.known {
		return
	}
	of.known = true
	for name := range of.hosts {
		value, _ := s.hosts.Load(name)
		if entry := value.(*host); entry.secret == of {
			s.hosts.Store(name, &host{secret: of, second: entry.second, origin: entry.origin})
		}
	}
}

// age notes that the last good pair is no longer what the Secret holds.
func (s *secret) age() {
	if last := s.shown.Load(); last != nil {
		s.show(&shown{pair: last.pair, names: last.names, old: true})
	}
}

func (s *secret) show(next *shown) {
	s.shown.Store(next)
	s.valid, s.outdated = tlssecret.PeriodOf(next.pair.Leaf), next.old
	for name := range s.hosts {
		s.judge(name)
	}
}

// known returns the Secret that the host shows.
func (h *host) known() *secret {
	if h.before != nil {
		return h.before
	}
	return h.secret
}

// good returns what the host shows, or nil. That of the Secret before is no longer what the host is to have: nobody renews it
// for the host, so that it goes when it has expired.
func (h *host) good() *shown {
	if h.before == nil {
		return h.secret.good()
	}
	if last := h.before.good(); last != nil && !last.expired() {
		return last
	}
	return nil
}

// good returns what may be shown, or nil. What the Secret holds is shown even when it has expired, as ingress-nginx does.
func (s *secret) good() *shown {
	last := s.shown.Load()
	if last == nil || last.old && last.expired() {
		return nil
	}
	return last
}

func (c *shown) expired() bool { return time.Now().After(c.pair.Leaf.NotAfter) }

// End is when a certificate ends that is shown.
type End struct {
	// Namespace is that of the Secret, or that of the object which the host comes from.
	Namespace string
	// Secret is the name of the Secret; it is empty for a certificate that was issued for Host, which is empty otherwise. One
	// field for both would take a host for a Secret with the same name.
	Secret, Host string
	At           time.Time
}

// Ends yields when certificates end, of each Secret and each host with one, in no particular order. It is for any goroutine.
func (s *Store) Ends() iter.Seq[End] {
	return func(yield func(End) bool) {
		s.ends.Range(func(of, at any) bool {
			end, ok := s.end(of.(source))
			end.At = at.(time.Time)
			return !ok || yield(end)
		})
	}
}

func (s *Store) end(of source) (end End, ok bool) {
	if !of.issued {
		return End{Namespace: of.secret.Namespace, Secret: of.secret.Name}, true
	}
	end.Host = of.host
	end.Namespace, ok = s.namespaceOf(of.host)
	return end, ok
}

// namespaceOf returns the namespace that a host comes from; it is empty where the document does not say.
func (s *Store) namespaceOf(name string) (string, bool) {
	value, ok := s.hosts.Load(name)
	if !ok {
		return "", false
	}
	return value.(*host).origin.Namespace, true
}

// source is where a certificate comes from: a Secret, or an issuer.
type source struct {
	secret ir.Name
	// issued says that it is the issuer, and host what it is asked for.
	issued bool
	host   string
}

func sourceOf(host string, c *ir.Certificate) source {
	if c.Automated {
		return source{issued: true, host: host}
	}
	return source{secret: c.Secret}
}

// SetIssued tells the certificate that an issuer has given for a host. It does nothing for a host that has its certificate
// from elsewhere. Until the first one is told, the host shows what it showed before.
func (s *Store) SetIssued(name string, pair *tls.Certificate) {
	of := s.secrets[source{issued: true, host: name}]
	if of == nil {
		return
	}
	of.show(&shown{pair: pair, names: tlssecret.NamesOf(pair.Leaf)})
	s.ends.Store(of.source, pair.Leaf.NotAfter)
	s.takeOver(of)
}
