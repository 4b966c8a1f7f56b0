package certs

import (
	"crypto/tls"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

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
	s.tell(of)
}
