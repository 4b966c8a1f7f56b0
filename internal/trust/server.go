package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

// ClientConfig returns the configuration with which a client speaks TLS to endpoints. Application protocols are for the
// caller to add. An error says that the Secret is no good for it, and nothing is to be sent then. A caller that keeps the
// result has to call again when Authority.Contents returns others, and to give up sessions and connections made with it:
// they belong to an old pair, or to a server that is not trusted any more.
func (c *Contents) ClientConfig(o *ir.BackendTLS) (*tls.Config, error) {
	// First, so that a Secret for verification only is not said to have no pair.
	if o.Verify && c.trustErr != nil {
		return nil, c.trustErr
	}
	pair, err := c.pairForServers()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		// What Go would do is done by VerifyConnection, which is called for resumed sessions too: Go knows no depth, no lists of
		// revoked certificates and no common names.
		InsecureSkipVerify: true,
		MinVersion:         version(o.MinVersion), MaxVersion: version(o.MaxVersion), CipherSuites: suites(o.Ciphers),
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if o.Verify {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			return c.verifyServer(state.PeerCertificates, o.Name, o.Depth, time.Now())
		}
	}
	if o.SendName {
		config.ServerName = o.Name
	}
	if pair != nil {
		// As nginx, whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return config, nil
}

// pairForServers returns nil without an error for a Secret that is for verification only.
func (c *Contents) pairForServers() (*tls.Certificate, error) {
	if errors.Is(c.pairErr, errNoPair) && c.trustErr == nil {
		return nil, nil
	}
	return c.Pair()
}

// verifyServer says whether a chain, as a server shows it, leads from its own certificate, which comes first, to one of
// ca.crt, and whether that is for a name.
func (c *Contents) verifyServer(chain []*x509.Certificate, name string, depth int, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("the endpoint shows no certificate")
	}
	if _, err := c.verify(chain, x509.ExtKeyUsageServerAuth, depth, now); err != nil {
		return fmt.Errorf("the certificate of the endpoint is refused: %w", err)
	}
	if !isFor(chain[0], name) {
		return fmt.Errorf("the certificate of the endpoint is for %s, not for %s", tlssecret.NamesOf(chain[0]), tlssecret.Quote(name))
	}
	if len(chain[0].DNSNames) == 0 && slices.ContainsFunc(slices.Concat(chain[1:], c.authorities), constrained) {
		// Go compares names with constraints, but not common names.
		return errors.New("the certificate of the endpoint has a common name only, and its issuers are limited to certain names")
	}
	return nil
}

func constrained(authority *x509.Certificate) bool {
	return len(authority.PermittedDNSDomains)+len(authority.ExcludedDNSDomains) > 0
}

// isFor takes the common name of a certificate that has no other, as nginx does.
func isFor(leaf *x509.Certificate, name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if _, err := netip.ParseAddr(name); err == nil {
		return leaf.VerifyHostname(name) == nil
	}
	return tlssecret.NamesOf(leaf).Cover(name)
}

// version is zero, which is Go's choice, for a name that is none.
func version(name string) uint16 {
	if i := slices.Index(ir.TLSVersions, name); i >= 0 {
		return tls.VersionTLS10 + uint16(i)
	}
	return 0
}

// suites returns nil, which is Go's choice, for no names.
func suites(names string) []uint16 {
	var ids []uint16
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(strings.Fields(names), suite.Name) {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}
