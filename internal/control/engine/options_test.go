package engine

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// TestChainsReachTheTranslation checks that the names of chains are options of the translation, so that changed names
// cause a new translation. The contents of chains do not affect the translation.
func TestChainsReachTheTranslation(t *testing.T) {
	with := func(content string, names ...string) settings.Config {
		c := settings.Config{Chains: map[string]json.RawMessage{}}
		for _, name := range names {
			c.Chains[name] = json.RawMessage(content)
		}
		return c
	}
	one := options(with(`[]`, "staff", "limits"))
	if got := one.Ingress.Defaults.AvailableChains; !slices.Equal(got, []string{"limits", "staff"}) {
		t.Errorf("the names are %v", got)
	}
	if !reflect.DeepEqual(one, options(with(`[{}]`, "limits", "staff"))) {
		t.Error("the same names are other options")
	}
	if reflect.DeepEqual(one, options(with(`[]`, "staff"))) {
		t.Error("a chain that has gone is not noticed")
	}
}

// TestReservedPorts checks that Services and ConfigMaps cannot open the ports that the process itself uses, whichever
// option sets these ports.
func TestReservedPorts(t *testing.T) {
	got := options(settings.Config{
		HTTP: []string{":8080", "127.0.0.1:8081-8082"}, HTTPS: []string{"[::1]:8443", "unix//run/https"},
		Health: ":10254", Admin: "localhost:2019",
	}).Streams.Reserved
	want := []streams.ReservedPort{
		{Protocol: ir.TCP, Port: 8080, Owner: "http"}, {Protocol: ir.TCP, Port: 8081, Owner: "http"},
		{Protocol: ir.TCP, Port: 8082, Owner: "http"},
		{Protocol: ir.TCP, Port: 8443, Owner: "https"}, {Protocol: ir.UDP, Port: 8443, Owner: "https"},
		{Protocol: ir.TCP, Port: 2019, Owner: "admin"}, {Protocol: ir.TCP, Port: 10254, Owner: "health"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("reserved are %+v", got)
	}
	without := options(settings.Config{HTTPS: []string{":8443"}, HTTP3: settings.HTTP3Off,
		Admin: settings.AdminOff}).Streams.Reserved
	if !slices.Equal(without, []streams.ReservedPort{{Protocol: ir.TCP, Port: 8443, Owner: "https"}}) {
		t.Errorf("without HTTP/3, reserved are %+v", without)
	}
	defaults := options(settings.Config{}.WithDefaults()).Streams.Reserved
	for _, port := range []uint16{80, 443, 2019} {
		if !slices.ContainsFunc(defaults,
			func(r streams.ReservedPort) bool { return r.Port == port && r.Protocol == ir.TCP }) {
			t.Errorf("port %d is free by default", port)
		}
	}
	if off := options(settings.Config{HTTP: []string{}, HTTPS: []string{},
		Admin: settings.AdminOff}).Streams.Reserved; len(off) > 0 {
		t.Errorf("with everything off, reserved are %+v", off)
	}
}

// TestAdminOfTheEnvironment checks that the default address of the admin API is Caddy's, which CADDY_ADMIN changes.
func TestAdminOfTheEnvironment(t *testing.T) {
	before := caddy.DefaultAdminListen
	defer func() { caddy.DefaultAdminListen = before }()
	caddy.DefaultAdminListen = "localhost:12019"
	for given, want := range map[string]string{"": "localhost:12019", "localhost:2019": "localhost:2019",
		settings.AdminOff: settings.AdminOff} {
		// In a process, the options are encoded without their defaults and decoded again.
		o := settings.Config{Admin: given}.WithDefaults().WithoutDefaults().WithDefaults()
		if got := adminAddress(o); got != want {
			t.Errorf("%q is %s, want %s", given, got, want)
		}
	}
}

// TestPortsOfServices checks which ports Services may open. An invalid range in the options allows no port, and does
// not affect the valid ranges.
func TestPortsOfServices(t *testing.T) {
	got := options(settings.Config{
		ServiceTCPPorts: []string{"5000-5999", "garbage", "99999"}, ServiceUDPPorts: []string{"53"},
		ServicePortNamespaces: []string{"shop"},
		AutoHTTPS:             settings.AutoHTTPSOff,
	}).Streams
	want := streams.ServicePorts{
		TCP: []settings.PortRange{{First: 5000, Last: 5999}}, UDP: []settings.PortRange{{First: 53, Last: 53}},
		Namespaces:   []string{"shop"},
		PerNamespace: settings.DefaultServicePortsPerNamespace,
	}
	if !reflect.DeepEqual(got.Services, want) || !got.NoIssuer {
		t.Errorf("the options are %+v", got)
	}
}
