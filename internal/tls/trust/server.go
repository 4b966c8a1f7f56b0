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

// ClientConfig returns the TLS configuration for connections to endpoints. The caller must add the application
// protocols (ALPN). If ClientConfig returns an error, the Secret is invalid, and the caller must not send anything to
// the endpoint. The result does not follow later changes of the Secret. A caller that keeps it must use a Client, which
// follows them.
func (c *Contents) ClientConfig(o *ir.BackendTLS) (*tls.Config, error) {
	pair, err := c.pairForServers()
	// Report an invalid ca.crt first: if the Secret is used only for verification, the missing tls.crt is not the
	// problem.
	if o.Verify && c.trustErr != nil {
		err = c.trustErr
	}
	if err != nil {
		return nil, fmt.Errorf("TLS connections to the endpoints need the Secret %s: %w", o.Secret, err)
	}
	config := &tls.Config{
		// crypto/tls supports neither a verification depth, nor revocation lists, nor common names. So disable its
		// verification, and verify the certificate in VerifyConnection below, which is also called for resumed
		// sessions.
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
		// As in nginx, send the certificate even if the server does not list its issuer as an accepted authority.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair, nil }
	}
	return config, nil
}

// pairForServers returns the client certificate to send to servers. It returns nil, without an error, if the Secret
// contains only ca.crt and thus no client certificate.
func (c *Contents) pairForServers() (*tls.Certificate, error) {
	if errors.Is(c.pairErr, errNoPair) && c.trustErr == nil {
		return nil, nil
	}
	return c.Pair()
}

// verifyServer verifies the certificate chain that a server has sent, in which the server's own certificate comes
// first. It returns an error if the server's certificate does not cover name, or if the chain does not lead to a
// certificate in ca.crt within the verification depth.
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
		// Reject the certificate, because crypto/x509 checks name constraints only for DNS names, not for common names.
		return errors.New(
			"the certificate of the endpoint has only a common name, but one of its certificate authorities is " +
				"limited to certain names")
	}
	return nil
}

func constrained(authority *x509.Certificate) bool {
	return len(authority.PermittedDNSDomains)+len(authority.ExcludedDNSDomains) > 0
}

// isFor reports whether a certificate covers a name. As in nginx, the common name is compared if the certificate has no
// other names.
func isFor(leaf *x509.Certificate, name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if _, err := netip.ParseAddr(name); err == nil {
		return leaf.VerifyHostname(name) == nil
	}
	return tlssecret.NamesOf(leaf).Cover(name)
}

// version returns the number of a TLS version, given its name. It returns zero if the name is unknown; crypto/tls then
// uses its default version.
func version(name string) uint16 {
	if i := slices.Index(ir.TLSVersions, name); i >= 0 {
		return tls.VersionTLS10 + uint16(i)
	}
	return 0
}

// suites returns the IDs of cipher suites, given their names. It returns nil if no name is known; crypto/tls then uses
// its default cipher suites.
func suites(names string) []uint16 {
	var ids []uint16
	for _, suite := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		if slices.Contains(strings.Fields(names), suite.Name) {
			ids = append(ids, suite.ID)
		}
	}
	return ids
}
