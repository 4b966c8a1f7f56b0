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

// GetCertificate returns the certificate for the server name that a client requests. It is the first of these
// certificates that exists: the certificate for this name, the certificate for the wildcard of its parent domain, the
// default certificate, a self-signed certificate. As in ingress-nginx, a certificate that does not cover the server
// name is skipped. If the name itself is in the store, a wildcard certificate from another namespace is not used for
// it. GetCertificate takes no lock.
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

// Find returns the same certificate as GetCertificate, except that it returns nil if GetCertificate would return the
// default or the self-signed certificate.
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

// mayStandIn reports whether the certificate for a wildcard may be used for a name that has no usable certificate of
// its own. It returns false if the name itself is in the store and comes from another namespace than the wildcard.
func (s *Store) mayStandIn(wildcard, name string) bool {
	own, ok := s.hosts.Load(name)
	if !ok {
		return true
	}
	above, ok := s.hosts.Load(wildcard)
	return ok && above.(*host).origin.Namespace == own.(*host).origin.Namespace
}

// Own returns the certificate that is configured for exactly this host, otherwise nil. It never returns the certificate
// for a wildcard that matches the host.
func (s *Store) Own(host string, hello *tls.ClientHelloInfo) *tls.Certificate {
	return s.find(host, host, hello)
}

// find returns the certificate that is stored for the host or wildcard in the parameter entry. It returns nil if there
// is no such certificate, or if the certificate does not cover name.
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

// choose returns the better certificate for a client if a host has two certificates. first and second may be nil.
// choose prefers a certificate that the client supports, then a certificate that is valid now, then an ECDSA
// certificate, because an ECDSA signature takes a tenth of the time of an RSA signature.
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
	// Clear the server name, so that SupportsCertificate does not compare it with the certificate. The method goodFor
	// has already checked the name. Unlike crypto/tls, it accepts common names.
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

// goodFor returns the certificate of the Secret if it is usable and covers name, otherwise nil.
func (s *secret) goodFor(name string) *tls.Certificate { return s.good().goodFor(name) }

func (c *shown) goodFor(name string) *tls.Certificate {
	if c != nil && c.names.Cover(name) {
		return c.pair
	}
	return nil
}

// makeSelfSigned creates the self-signed certificate that is used if no other certificate matches. It has the same
// subject as ingress-nginx's fake certificate, so that users recognize it.
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
