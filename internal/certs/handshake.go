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

// GetCertificate returns the certificate for the name that a client asks for: that of the name, else that of the
// wildcard of its parent, else the default one. A certificate that is not good for the name is passed over, as in
// ingress-nginx. It takes no lock.
func (s *Store) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name != "" {
		if c := s.find(name, name); c != nil {
			return c, nil
		}
		if c := s.wildcard(name); c != nil {
			return c, nil
		}
	}
	if entry, ok := s.hosts.Load(""); ok {
		if c := entry.(*host).known().good(); c != nil {
			return c.pair, nil
		}
	}
	return s.selfSigned(), nil
}

// wildcard returns the certificate that the wildcard of the parent has for a name, or nil.
func (s *Store) wildcard(name string) *tls.Certificate {
	dot := strings.IndexByte(name, '.')
	if dot <= 0 {
		return nil
	}
	return s.find("*"+name[dot:], name)
}

func (s *Store) find(entry, name string) *tls.Certificate {
	h, ok := s.hosts.Load(entry)
	if !ok {
		return nil
	}
	c := h.(*host).known().good()
	if c == nil || !c.names.Cover(name) {
		return nil
	}
	return c.pair
}

// makeSelfSigned makes the certificate for names that no other one is for. It has the name that ingress-nginx gives its
// own, by which people know that none was found.
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
		Subject:      pkix.Name{CommonName: "Kubernetes Ingress Controller Fake Certificate", Organization: []string{"Acme Co"}},
		DNSNames:     []string{"ingress.local"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
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
