package featuretests

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

func TestWildcardFromACME(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	ca := newAuthority(in)
	in.write("manifests.yaml", class+service("web", port, ip)+automatic("wild", "*.dns.example"))
	dns := fmt.Sprintf(
		`"challenges":{"dns":{"provider":{"name":"featuretests","control":%q},"resolvers":[%q],`+
			`"propagation_timeout":-1}}`,
		ca.Control, ca.DNS)
	in.issuing(settings.Config{Issuers: []json.RawMessage{ca.issuer(dns)}})
	leaf := in.trusted(ca.roots(), "any.dns.example")
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != "*.dns.example" {
		t.Errorf("the certificate is for %v", leaf.DNSNames)
	}
}
