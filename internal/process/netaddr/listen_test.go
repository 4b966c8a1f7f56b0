package netaddr_test

import (
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/process/netaddr"
)

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{":80", ":80", true},
		{":80", ":81", false},
		{":80-90", ":90-99", true},
		{":80-89", ":90-99", false},
		{":80", "127.0.0.1:80", true},
		{"0.0.0.0:80", "127.0.0.1:80", true},
		{"[::]:80", "web.example:80", true},
		{"[0:0:0:0:0:0:0:0]:80", "127.0.0.1:80", true},
		{"127.0.0.1:80", "127.0.0.2:80", false},
		{"[::1]:80", "[0:0:0:0:0:0:0:1]:80", true},
		{"web.example:80", "web.example:80", true},
		{"web.example:80", "api.example:80", false},
		{"web.example:80", "127.0.0.1:80", false},
		{"tcp4/:80", "tcp6/:80", true},
		{"udp/:80", "tcp/:80", false},
		{"k8singress/:80", "tcp/:80", true},
		{"k8singress6/:80", "tcp4/127.0.0.1:80", true},
		{"k8singress/:80", "udp/:80", false},
		{"k8singress-probes4/:80", "k8singress/127.0.0.1:80", true},
		{"k8singress-probes/:80", "udp/:80", false},
		{"unix//run/a.sock", "unix//run/a.sock", true},
		{"unix//run/a.sock", "unix//run/b.sock", false},
		{"unix//run/a.sock", "unixgram//run/a.sock", true},
		{"unix//run/a.sock", ":80", false},
	} {
		a, b := parse(t, c.a), parse(t, c.b)
		if netaddr.Overlap(a, b) != c.want || netaddr.Overlap(b, a) != c.want {
			t.Errorf("%s and %s: want %v both ways", c.a, c.b, c.want)
		}
	}
}

// TestOwnNetworks checks that addresses become those of the networks Front and Probes, and back.
func TestOwnNetworks(t *testing.T) {
	for _, c := range []struct{ plain, own string }{
		{":80", "/:80"},
		{"tcp4/127.0.0.1:80-90", "4/127.0.0.1:80-90"},
		{"tcp6/[::1]:80", "6/[::1]:80"},
		{"udp/:80", ""},
		{"unix//run/a.sock", ""},
	} {
		for name, to := range map[string]func(caddy.NetworkAddress) (caddy.NetworkAddress, bool){
			"k8singress": netaddr.OnFront, "k8singress-probes": netaddr.OnProbes,
		} {
			on, ok := to(parse(t, c.plain))
			if want := c.own != ""; ok != want || want && on.String() != name+c.own {
				t.Errorf("%s becomes %s, %v", c.plain, on, ok)
			}
			if off := netaddr.OffFront(on); off != parse(t, c.plain) {
				t.Errorf("%s comes back as %s", c.plain, off)
			}
		}
	}
}

func parse(t *testing.T, s string) caddy.NetworkAddress {
	t.Helper()
	address, err := caddy.ParseNetworkAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return address
}
