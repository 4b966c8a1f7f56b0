// Package certs stores the certificates for TLS handshakes. It finds the certificate for the server name that a client
// requests. A certificate is parsed only once. If a Secret becomes invalid, its last valid certificate stays in use.
package certs

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Store holds the certificates of hosts and listeners. The certificates come from Secrets or from issuers.
// GetCertificate, Find, FindFor, Own, Ends and Uses are safe for concurrent use; all other methods must be called from
// a single goroutine.
type Store struct {
	// hosts maps host names to *host. The default certificate has the name "".
	hosts sync.Map
	// secrets holds all certificates: each Secret that a host or a listener refers to, and each certificate that an
	// issuer has issued for a host.
	secrets shrinking.Map[source, *secret]
	// listeners maps the name of each listener that has its own certificates to a []*secret, which contains the Secrets
	// with these certificates.
	listeners sync.Map
	// selfSigned returns the self-signed certificate, which is used if there is no default certificate.
	selfSigned func() *tls.Certificate
	// ends maps the source of each certificate in use to the expiry time of the certificate.
	ends sync.Map
	// checked is the time of the last call of Problems.
	checked time.Time
}

// host holds the Secrets with the certificates of one host. As long as the host refers to the same Secret, the field
// secret contains the same pointer.
type host struct {
	secret *secret
	// second is the second Secret of a host for which two Secrets are configured, otherwise nil.
	second *secret
	origin ir.Origin
	// before is the Secret that the host used previously. Its certificate stays in use until the contents of the new
	// Secret are known, or until it expires. before is nil if the contents of the current Secret are known.
	before *secret
}

// secret is a Secret that at least one host or listener refers to, or the certificate that an issuer has issued for a
// host.
type secret struct {
	source source
	hosts  shrinking.Map[string, struct{}]
	// listeners maps the name of each listener that uses the Secret to the object that defines the listener. It is nil
	// if no listener uses the Secret.
	listeners map[string]ir.Ref
	// strays holds the hosts that use the Secret although its certificate does not cover them, or is nil.
	strays map[string]struct{}
	// valid is the validity period of the certificate in use. It is stored here because Problems reads it for every
	// Secret.
	valid tlssecret.Period
	// outdated is true if the Secret no longer contains the certificate in use.
	outdated bool
	// shown is the certificate in use, or nil if the Secret has never contained a valid one.
	shown atomic.Pointer[shown]
	// known is true after the first call of SetSecret or SetIssued for this Secret, even if SetSecret was told that the
	// Secret does not exist.
	known bool
	// missing is true if the Secret does not exist.
	missing bool
	// parsed is true if the current contents of the Secret were parsed. sum is the checksum of the contents that were
	// parsed last. problem is the error of parsing them, or nil if the contents are valid.
	parsed  bool
	sum     [sha256.Size]byte
	problem error
}

// shown is the last valid certificate and key of a Secret.
type shown struct {
	pair  *tls.Certificate
	names tlssecret.Names
	// old is true if the Secret was changed or deleted and no longer contains this certificate.
	old bool
}

// NewStore returns an empty store. It uses a self-signed certificate for every name until certificates are added.
func NewStore() *Store {
	return &Store{selfSigned: sync.OnceValue(makeSelfSigned)}
}

// Update sets which Secrets contain the certificates of hosts. The keys of changes are the names of the changed hosts;
// a nil value removes a host. For each Secret that was not in use before, the caller must call SetSecret afterwards.
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
	for from, secret := range s.secrets.All() {
		if secret.hosts.Len() == 0 && len(secret.listeners) == 0 {
			s.secrets.Delete(from)
			s.ends.Delete(from)
		}
	}
}

// s.use(name, c) replaces the entry of a host in s.hosts. The replacement is atomic: each handshake finds either the
// old or the new entry.
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

// named returns the entry of s.secrets for a Secret or an issued certificate. It creates the entry if it does not
// exist.
func (s *Store) named(from source) *secret {
	used := s.secrets.Get(from)
	if used == nil {
		used = &secret{source: from}
		s.secrets.Set(from, used)
	}
	return used
}

func (s *Store) forget(name string) {
	if old, ok := s.hosts.LoadAndDelete(name); ok {
		old.(*host).drop(name)
	}
}

// The method drop removes the host from the set of hosts that each of its Secrets keeps (secret.hosts). name is the
// name of the host.
func (h *host) drop(name string) {
	h.secret.drop(name)
	if h.second != nil {
		h.second.drop(name)
	}
}

func (s *secret) add(name string) {
	s.hosts.Set(name, struct{}{})
	s.judge(name)
}

func (s *secret) drop(name string) {
	s.hosts.Delete(name)
	s.pardon(name)
}

func (s *secret) pardon(name string) {
	if delete(s.strays, name); len(s.strays) == 0 {
		s.strays = nil
	}
}

// judge updates s.strays for a host: it checks whether the certificate in the Secret covers the host. The default
// certificate, which has the name "", need not cover any host.
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

// SetSecret sets the contents of a Secret; present is false if the Secret does not exist. It does nothing if no host or
// listener uses the Secret. If the contents are missing or invalid, the last valid certificate stays in use until it
// expires.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	of := s.secrets.Get(source{secret: name})
	if of == nil {
		return
	}
	defer s.takeOver(of)
	if of.missing = !present; of.missing {
		of.parsed, of.problem = false, nil
		of.markOutdated()
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
		of.markOutdated()
		return
	}
	of.show(&shown{pair: pair, names: tlssecret.NamesOf(pair.Leaf)})
	s.ends.Store(of.source, pair.Leaf.NotAfter)
}

// takeOver is called when the contents of a Secret become known. The hosts that use the Secret then stop using the
// certificate of their previous Secret.
func (s *Store) takeOver(of *secret) {
	if of.known {
		return
	}
	of.known = true
	for name := range of.hosts.Keys() {
		value, _ := s.hosts.Load(name)
		if entry := value.(*host); entry.secret == of {
			s.hosts.Store(name, &host{secret: of, second: entry.second, origin: entry.origin})
		}
	}
}

// markOutdated records that the Secret no longer contains the certificate in use.
func (s *secret) markOutdated() {
	if last := s.shown.Load(); last != nil {
		s.show(&shown{pair: last.pair, names: last.names, old: true})
	}
}

func (s *secret) show(next *shown) {
	s.shown.Store(next)
	s.valid, s.outdated = tlssecret.PeriodOf(next.pair.Leaf), next.old
	for name := range s.hosts.Keys() {
		s.judge(name)
	}
}

// known returns the Secret from which the host's certificate currently comes. This is the previous Secret as long as
// the contents of the new Secret are not known.
func (h *host) known() *secret {
	if h.before != nil {
		return h.before
	}
	return h.secret
}

// good returns the certificate to serve for the host, or nil if the host has no usable certificate. While the host
// still uses its previous Secret, good returns nil once that certificate has expired, because a previous Secret is not
// renewed for the host.
func (h *host) good() *shown {
	if h.before == nil {
		return h.secret.good()
	}
	if last := h.before.good(); last != nil && !last.expired() {
		return last
	}
	return nil
}

// good returns the certificate of the Secret, or nil if the Secret has no usable certificate. As in ingress-nginx, an
// expired certificate is used as long as the Secret contains it.
func (s *secret) good() *shown {
	last := s.shown.Load()
	if last == nil || last.old && last.expired() {
		return nil
	}
	return last
}

func (c *shown) expired() bool { return time.Now().After(c.pair.Leaf.NotAfter) }

// End describes when a certificate in use expires, and where the certificate comes from.
type End struct {
	// Namespace is the namespace of the Secret. For an issued certificate, it is the namespace of the object that
	// defines the host.
	Namespace string
	// For a certificate from a Secret, Secret is the name of the Secret, and Host is empty. For a certificate from an
	// issuer, Host is the host for which it was issued, and Secret is empty. There are two fields because a Secret and
	// a host can have the same name.
	Secret, Host string
	At           time.Time
}

// Ends yields the expiry time of the certificate of each Secret, and of each certificate that was issued for a host, in
// no particular order. It is safe for concurrent use.
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

// namespaceOf returns the namespace of the object that defines a host, or "" if the configuration does not contain this
// object. It returns false if the store has no such host.
func (s *Store) namespaceOf(name string) (string, bool) {
	value, ok := s.hosts.Load(name)
	if !ok {
		return "", false
	}
	return value.(*host).origin.Namespace, true
}

// Use is a certificate that a host uses.
type Use struct {
	// Host is the name of the host, or empty for the default certificate.
	Host string
	// Namespace and Secret name the Secret with the certificate. Secret is empty for a certificate from an issuer.
	// Namespace is then the namespace of the object that defines the host.
	Namespace, Secret string
	Leaf              *x509.Certificate
}

// Uses yields the certificates of all hosts, in no particular order. A host with two Secrets has two certificates. It
// is safe for concurrent use.
func (s *Store) Uses() iter.Seq[Use] {
	return func(yield func(Use) bool) {
		s.hosts.Range(func(name, value any) bool {
			h := value.(*host)
			for _, of := range []*secret{h.known(), h.second} {
				if of == nil {
					continue
				}
				last := of.good()
				if last == nil {
					continue
				}
				use := Use{Host: name.(string), Namespace: of.source.secret.Namespace, Secret: of.source.secret.Name,
					Leaf: last.pair.Leaf}
				if of.source.issued {
					use.Namespace = h.origin.Namespace
				}
				if !yield(use) {
					return false
				}
			}
			return true
		})
	}
}

// source identifies where a certificate comes from: a Secret, or an issuer.
type source struct {
	secret ir.Name
	// issued is true if the certificate comes from an issuer; host is then the host name for which it was ordered.
	issued bool
	host   string
}

func sourceOf(host string, c *ir.Certificate) source {
	if c.Automated {
		return source{issued: true, host: host}
	}
	return source{secret: c.Secret}
}

// SetIssued sets the certificate that an issuer has issued for a host. It does nothing if the host uses a certificate
// from a Secret. Until the first call, the host keeps using its previous certificate.
func (s *Store) SetIssued(name string, pair *tls.Certificate) {
	of := s.secrets.Get(source{issued: true, host: name})
	if of == nil {
		return
	}
	of.show(&shown{pair: pair, names: tlssecret.NamesOf(pair.Leaf)})
	s.ends.Store(of.source, pair.Leaf.NotAfter)
	s.takeOver(of)
}
