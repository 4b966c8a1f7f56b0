package realip_test

import (
	"net/netip"
	"testing"

	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestNames checks which addresses are treated as configured proxies, and that a network of all addresses is ignored.
func TestNames(t *testing.T) {
	p := realip.New(ir.Clients{Trusted: []string{"0.0.0.0/0", "::/0", "10.0.0.0/8", "192.0.2.1", "2001:db8::/32"}})
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "192.0.2.1": true, "192.0.2.2": false, "2001:db8::1": true,
		"2001:db9::1": false,
	} {
		ip := netip.MustParseAddr(address)
		if got := p.Names(ip); got != want {
			t.Errorf("Names(%s) is %v", address, got)
		}
		if !p.Trusts(ip) {
			t.Errorf("%s is not trusted", address)
		}
	}
	if ip := netip.MustParseAddr("10.1.2.3"); realip.New(ir.Clients{}).Names(ip) {
		t.Error("without options, an address is named as a proxy")
	}
}
