package featuretests

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestTenant05Issuance checks that a namespace that replaces its hosts all the time without getting certificates uses
// up its own budget, and not the budget of the account.
func TestTenant05Issuance(t *testing.T) {
	ip, port := backend(t, "one")
	in := newIngress(t)
	ca := newAuthority(in)
	in.write("manifests.yaml", class+service("web", port, ip))
	in.issuing(settings.Config{Issuers: []json.RawMessage{ca.issuer("")}, NewHostsPerDay: 4})
	ca.fails(fault{Path: "order-plz", Status: 403, Type: "urn:ietf:params:acme:error:rejectedIdentifier",
		Detail: "not this one"})
	over := func(n int) (told bool) {
		name := fmt.Sprintf("b%d", n)
		text := strings.Replace(automatic(name, name+".hostile.example"), "{name: "+name,
			"{namespace: b, name: "+name, 1)
		in.write("b.yaml", text)
		in.eventually("what is said of "+name, func() error {
			got := in.message("Ingress/b/"+name, "ACMEFailed")
			told = strings.Contains(got, "4 new names of the namespace b within 24 hours")
			if got == "" {
				return fmt.Errorf("nothing")
			}
			return nil
		})
		return told
	}
	for n := range 6 {
		if told, want := over(n), n >= 4; told != want {
			t.Errorf("host %d: over the budget is %v", n, told)
		}
	}
	ca.mends()
	in.write("victim.yaml", automatic("victim", "shop.example"))
	in.trusted(ca.roots(), "shop.example")
}
