package certs

import "crypto/tls"

// issuedPrefix begins the names under which the certificates of issuers stand among the Secrets. No Secret has a name with a
// colon.
const issuedPrefix = "issued:"

// SetIssued tells the certificate that an issuer has given for a host. It does nothing for a host that has its certificate
// from elsewhere. Until the first one is told, the host shows what it showed before.
func (s *Store) SetIssued(name string, pair *tls.Certificate) {
	of := s.secrets[issuedPrefix+name]
	if of == nil {
		return
	}
	of.show(&shown{pair: pair, names: NamesOf(pair.Leaf)})
	s.tell(of)
}
