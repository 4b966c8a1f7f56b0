package certs

import (
	"crypto/tls"
	"strings"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

// issuedPrefix begins the names under which the certificates of issuers stand among the Secrets. No Secret has a name with a
// colon.
const issuedPrefix = "issued:"

// sourceOf returns the name under which a certificate stands among the Secrets.
func sourceOf(host string, c *document.Certificate) string {
	if c.Automated {
		return issuedPrefix + host
	}
	return c.Secret
}

// issued says that it is the certificate of an issuer, of which others have more to say.
func (s *secret) issued() bool { return strings.HasPrefix(s.name, issuedPrefix) }

// SetIssued tells the certificate that an issuer has given for a host. It does nothing for a host that has its certificate
// from elsewhere. Until the first one is told, the host shows what it showed before.
func (s *Store) SetIssued(name string, pair *tls.Certificate) {
	of := s.secrets[issuedPrefix+name]
	if of == nil {
		return
	}
	of.show(&shown{pair: pair, names: tlssecret.NamesOf(pair.Leaf)})
	s.ends.Store(of.name, pair.Leaf.NotAfter)
	s.tell(of)
}
