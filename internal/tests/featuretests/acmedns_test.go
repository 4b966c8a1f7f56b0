package featuretests

import (
	"crypto/elliptic"
	"fmt"
	"slices"
	"testing"
)

// TestWildcardFromACME checks that a wildcard gets its certificate with the DNS challenge, whose provider is a module.
// The authority and the provider are Caddy's global options, and the option issuer sets only what differs.
func TestWildcardFromACME(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	ca := newAuthority(in)
	t.Setenv("DNS_CONTROL", ca.Control)
	t.Setenv("KEY_TYPE", "p384")
	in.write("manifests.yaml", class+service("web", port, ip)+automatic("wild", "*.dns.example"))
	in.loadCaddyfile(fmt.Sprintf(`{
		admin %s
		storage file_system %s
		email sites@example.com
		acme_ca %s
		acme_ca_root %s
		acme_dns featuretests {env.DNS_CONTROL}
		tls_resolvers %s
		key_type {env.KEY_TYPE}
		k8singress {
			http %s
			https %s
			manifests %s
			issuer acme {
				email ingresses@example.com
				propagation_timeout -1
			}
		}
	}`, in.admin, in.TempDir(), ca.Directory, ca.Root, ca.DNS, in.http, in.https, in.folder))
	in.awaitReady()
	leaf := in.trusted(ca.roots(), "any.dns.example")
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "*.dns.example" {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}
	if curve := in.curve("any.dns.example"); curve != elliptic.P384() {
		t.Errorf("the curve of the key is %v", curve)
	}
	if got := ca.taken().Accounts; len(got) != 1 || !slices.Equal(got[0], []string{"mailto:ingresses@example.com"}) {
		t.Errorf("the accounts have the contacts %q", got)
	}
}
