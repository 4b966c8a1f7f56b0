package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"strings"
	"time"
)

// GetCertificate returns the certificate for the server name that a client requests: the certificate of the name, else
// of the wildcard of its parent domain, else the default one. As in ingress-nginx, a certificate that does not cover
// the name is skipped. The wildcard certificate of another namespace is not used for a name that has its own entry.
// GetCertificate takes no lock.
func (s *Store) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := s.Find(hello); c != nil {
		return c, nil
	}
	if entry, ok := s.hosts.Load(""); ok {
		if c := entry.(*host).good(); c != nil {
			return c.pair, nil
		}
	}
	return s.selfSigned(), nil
}

// Find returns the same certificate as GetCertificate, but nil in place of the default or the self-signed certificate.
func (s *Store) Find(hello *tls.ClientHelloInfo) *tls.Certificate {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" {
		return nil
	}
	if c := s.find(name, name, hello); c != nil {
		return c
	}
	if dot := strings.IndexByte(name, '.'); dot > 0 && s.mayStandIn("*"+name[dot:], name) {
		return s.find("*"+name[dot:], name, hello)
	}
	return nil
}

// mayStandIn reports whether the certificate of a wildcard may be used for a name that has no usable certificate of its
// own. It may not if an entry of another namespace names a certificate for the name.
func (s *Store) mayStandIn(wildcard, name string) bool {
	own, ok := s.hosts.Load(name)
	if !ok {
		return true
	}
	above, ok := s.hosts.Load(wildcard)
	return ok && above.(*host).origin.Namespace == own.(*host).origin.Namespace
}

// Own returns the certificate of the host itself, never a wildcard's. It returns nil if there is none.
func (s *Store) Own(host string, hello *tls.ClientHelloInfo) *tls.Certificate {
	return s.find(host, host, hello)
}

// find returns the certificate that an entry has for a name, or nil.
func (s *Store) find(entry, name string, hello *tls.ClientHelloInfo) *tls.Certificate {
	value, ok := s.hosts.Load(entry)
	if !ok {
		return nil
	}
	h := value.(*host)
	first := h.good().goodFor(name)
	if h.second == nil {
		return first
	}
	return choose(hello, first, h.second.goodFor(name))
}

// choose returns the better of two certificates for a client. Either may be nil. A certificate that the client cannot
// use, or that is not valid now, is worse than any other. An RSA key is worse than an ECDSA key, because an ECDSA
// signature takes a tenth of the time.
func choose(hello *tls.ClientHelloInfo, first, second *tls.Certificate) *tls.Certificate {
	switch {
	case first == nil:
		return second
	case second == nil || worth(hello, first) >= worth(hello, second):
		return first
	}
	return second
}

func worth(hello *tls.ClientHelloInfo, c *tls.Certificate) (points int) {
	// goodFor has already compared the name, and crypto/tls ignores common names, so check without the name.
	nameless := *hello
	nameless.ServerName = ""
	if nameless.SupportsCertificate(c) == nil {
		points += 4
	}
	if now := time.Now(); !now.Before(c.Leaf.NotBefore) && !now.After(c.Leaf.NotAfter) {
		points += 2
	}
	if c.Leaf.PublicKeyAlgorithm != x509.RSA {
		points++
	}
	return points
}

// goodFor returns the certificate that may be used for a name, or nil.
func (s *secret) goodFor(name string) *tls.Certificate { return s.good().goodFor(name) }

func (c *shown) goodFor(name string) *tls.Certificate {
	if c != nil && c.names.Cover(name) {
		return c.pair
	}
	return nil
}

// makeSelfSigned returns the certificate for names without any other certificate. It has the same subject as
// ingress-nginx's fake certificate, so that users recognize it.
func makeSelfSigned() *tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject: pkix.Name{CommonName: "Kubernetes Ingress Controller Fake Certificate",
			Organization: []string{"Acme Co"}},
		DNSNames:    []string{"ingress.local"},
		NotBefore:   time.Now().Add(-time.Hour),
		NotAfter:    time.Now().AddDate(1, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
