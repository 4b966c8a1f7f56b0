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

	"github.com/k8singress/k8singress/internal/model/ir"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// ClientConfig returns the TLS configuration for connections to endpoints. The caller adds application protocols
// (ALPN). If ClientConfig returns an error, the Secret is invalid, and nothing may be sent. A caller that keeps the
// result must call again when Authority.Contents returns a new value. It must then drop the sessions and connections
// made with the old configuration: they use an old pair, or a server that is no longer trusted.
func (c *Contents) ClientConfig(o *ir.BackendTLS) (*tls.Config, error) {
	// Check this first: for a Secret that is used only for verification, a missing pair is not the problem to report.
	if o.Verify && c.trustErr != nil {
		return nil, c.trustErr
	}
	pair, err := c.pairForServers()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		// VerifyConnection below replaces Go's verification, and is also called for resumed sessions. Go supports no
		// verification depth, no revocation lists and no common names.
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
		// As in nginx, send the certificate whatever authorities the server names.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return config, nil
}

// pairForServers returns the pair, or nil without an error if the Secret contains only ca.crt.
func (c *Contents) pairForServers() (*tls.Certificate, error) {
	if errors.Is(c.pairErr, errNoPair) && c.trustErr == nil {
		return nil, nil
	}
	return c.Pair()
}

// verifyServer verifies the chain that a server sent, with the server's certificate first. It returns an error unless
// the chain leads to a certificate in ca.crt and the server's certificate covers name.
func (c *Contents) verifyServer(chain []*x509.Certificate, name string, depth int, now time.Time) error {
	if len(chain) == 0 {
		return errors.New("the endpoint sends no certificate")
	}
	if _, err := c.verify(chain, x509.ExtKeyUsageServerAuth, depth, now); err != nil {
		return fmt.Errorf("the certificate of the endpoint is rejected: %w", err)
	}
	if !isFor(chain[0], name) {
		return fmt.Errorf("the certificate of the endpoint is for %s, not for %s", tlssecret.NamesOf(chain[0]),
			tlssecret.Quote(name))
	}
	if len(chain[0].DNSNames) == 0 && slices.ContainsFunc(slices.Concat(chain[1:], c.authorities), constrained) {
		// Go checks name constraints only for DNS names, not for common names.
		return errors.New(
			"the certificate of the endpoint has a common name only, and its issuers are limited to certain names")
	}
	return nil
}

func constrained(authority *x509.Certificate) bool {
	return len(authority.PermittedDNSDomains)+len(authority.ExcludedDNSDomains) > 0
}

// isFor reports whether a certificate covers a name. As in nginx, the common name is used if the certificate has no
// other names.
func isFor(leaf *x509.Certificate, name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if _, err := netip.ParseAddr(name); err == nil {
		return leaf.VerifyHostname(name) == nil
	}
	return tlssecret.NamesOf(leaf).Cover(name)
}

// version returns the TLS version with a name, or zero, which selects Go's default, for an unknown name.
func version(name string) uint16 {
	if i := slices.Index(ir.TLSVersions, name); i >= 0 {
		return tls.VersionTLS10 + uint16(i)
	}
	return 0
}

// suites returns the IDs of the named cipher suites. Without any it returns nil, which selects Go's defaults.
func suites(names string) []uint16 {
	var ids []uint16
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(strings.Fields(names), suite.Name) {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}
