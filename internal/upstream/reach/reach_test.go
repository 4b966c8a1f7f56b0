package reach

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func networks(t *testing.T, texts ...string) (all []netip.Prefix) {
	t.Helper()
	for _, text := range texts {
		n, err := ParseNetwork(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// reasons are the expected reasons for endpoint addresses under the default policy.
var reasons = map[string]Reason{
	"127.0.0.1": Loopback, "127.9.9.9": Loopback, "::1": Loopback, "::ffff:127.0.0.1": Loopback,
	"64:ff9b::7f00:1":   Loopback,
	"64:ff9b:1::7f00:1": Loopback, "::ffff:0:127.0.0.1": Loopback, "2002:7f00:1::": Loopback, "::127.0.0.1": Loopback,
	"2001:0:1:2:3:4:80ff:fffe": Loopback, "0.0.0.0": Unspecified, "0.1.2.3": Unspecified, "::": Unspecified,
	"::ffff:0.0.0.0": Unspecified,
	"169.254.1.1":    LinkLocal, "fe80::1": LinkLocal, "fe80::1%lo": LinkLocal, "224.0.0.1": Multicast,
	"ff02::1":      Multicast,
	"ff02::1%eth0": Multicast, "255.255.255.255": Multicast, "169.254.169.254": Metadata,
	"64:ff9b::a9fe:a9fe": Metadata,
	"fd00:ec2::254":      Metadata, "100.100.100.200": Metadata, "168.63.129.16": Metadata, "10.96.0.1": APIServer,
	"::ffff:10.96.0.1": APIServer,
	"10.0.0.1":         "", "192.168.1.1": "", "172.16.0.1": "", "100.64.0.1": "", "192.0.2.1": "", "2001:db8::1": "",
	"fd00::1": "",
}

// reason returns the reason why a connection to an endpoint is not allowed, or "".
func (g *Guard) reason(backend, address string, over Transport, port uint16) Reason {
	var refusal *Refusal
	errors.As(g.Check(backend, over, netip.AddrPortFrom(netip.MustParseAddr(address), port)), &refusal)
	if refusal == nil {
		return ""
	}
	return refusal.Reason
}

func TestUsual(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	g := NewGuard()
	for text, want := range reasons {
		if got := g.reason("shop/web/80", text, TCP, 80); got != want {
			t.Errorf("%s is refused because of %q, want %q", text, got, want)
		}
		if got := Name(netip.MustParseAddr(text), nil); got != want {
			t.Errorf("for a name, %s is refused because of %q, want %q", text, got, want)
		}
		if want == APIServer {
			continue
		}
		if got := (*Guard)(nil).Check("", TCP,
			netip.AddrPortFrom(netip.MustParseAddr(text), 80)); (got == nil) != (want == "") {
			t.Errorf("without a guard, %s: %v", text, got)
		}
	}
	own := addresses("10.9.9.9", "2001:db8::9")
	for _, text := range []string{"10.9.9.9", "::ffff:10.9.9.9", "64:ff9b::a09:909", "2001:db8::9"} {
		if got := Name(netip.MustParseAddr(text), own); got != Machine {
			t.Errorf("for a name, %s is refused because of %q", text, got)
		}
	}
	if got := g.reason("default/kubernetes/443", "10.96.0.1", TCP, 443); got != "" {
		t.Errorf("the API server's own Service does not lead there: %s", got)
	}
	if got := g.reason("default/kubernetes-2/443", "10.96.0.1", TCP, 443); got != APIServer {
		t.Errorf("another Service leads to the API server: %q", got)
	}
}

// TestNarrowest checks that the narrowest network that contains an address decides.
func TestNarrowest(t *testing.T) {
	for _, c := range []struct {
		name        string
		allow, deny []string
		address     string
		want        Reason
	}{
		{"a wide network opens nothing", []string{"0.0.0.0/0"}, nil, "127.0.0.1", Loopback},
		{"an equal one does", []string{"127.0.0.0/8"}, nil, "127.0.0.1", ""},
		{"a narrower one does", []string{"127.0.0.2"}, nil, "127.0.0.2", ""},
		{"and no more than itself", []string{"127.0.0.2"}, nil, "127.0.0.1", Loopback},
		{"in IPv6 as well", []string{"127.0.0.0/8"}, nil, "::ffff:127.0.0.1", ""},
		{"written in IPv6", []string{"::ffff:127.0.0.0/104"}, nil, "127.0.0.1", ""},
		{"link-local without the metadata", []string{"169.254.0.0/16"}, nil, "169.254.169.254", Metadata},
		{"link-local", []string{"169.254.0.0/16"}, nil, "169.254.1.1", ""},
		{"deny", nil, []string{"10.0.0.0/16"}, "10.0.1.1", Denied},
		{"deny, beside it", nil, []string{"10.0.0.0/16"}, "10.1.1.1", ""},
		{"deny, in another spelling", nil, []string{"10.0.0.0/16"}, "64:ff9b::a00:101", Denied},
		{"deny the spelling itself", nil, []string{"64:ff9b::/96"}, "64:ff9b::a00:101", Denied},
		{"all but", []string{"10.244.0.0/16"}, []string{"0.0.0.0/0"}, "10.244.1.1", ""},
		{"all but, the others", []string{"10.244.0.0/16"}, []string{"0.0.0.0/0"}, "10.245.1.1", Denied},
		{"equal ones", []string{"10.0.0.0/16"}, []string{"10.0.0.0/16"}, "10.0.1.1", Denied},
	} {
		p := NewPolicy(Options{Allow: networks(t, c.allow...), Deny: networks(t, c.deny...)})
		if got := p.Endpoint(netip.MustParseAddr(c.address)); got != c.want {
			t.Errorf("%s: %s is refused because of %q, want %q", c.name, c.address, got, c.want)
		}
	}
	for _, text := range []string{"", "localhost", "10.0.0.0/33", "127.1", "fe80::1%lo"} {
		if n, err := ParseNetwork(text); err == nil {
			t.Errorf("%q is the network %s", text, n)
		}
	}
}

// TestListening checks that no option allows connections to addresses on which this process listens.
func TestListening(t *testing.T) {
	g := NewGuard()
	g.machine = newMachine(func() ([]netip.Addr, error) { return addresses("10.9.9.9"), nil })
	g.Configure(Options{Allow: networks(t, "127.0.0.0/8", "0.0.0.0/8", "::1", "10.9.9.9"), AnyName: true})
	everywhere, local := netip.Addr{}, netip.MustParseAddr("127.0.0.1")
	all := []Listening{
		{TCP, everywhere, 80, 81, true}, {TCP, local, 2019, 2019, false}, {UDP, netip.IPv6Unspecified(), 53, 53, false},
	}
	g.Listen("options", all)
	if g.Listen("options", slices.Clone(all)) {
		t.Error("the same is another one")
	}
	g.SetName("shop/name/80", true)
	for _, c := range []struct {
		address string
		over    Transport
		port    uint16
		want    Reason
	}{
		{"10.9.9.9", TCP, 80, Own}, {"10.9.9.9", TCP, 81, Own}, {"10.9.9.9", TCP, 82, ""}, {"10.9.9.9", UDP, 80, ""},
		{"10.9.9.9", UDP, 53, Own},
		{"127.0.0.1", TCP, 80, Own}, {"127.0.0.2", TCP, 80, Own}, {"::1", TCP, 80, Own}, {"0.0.0.0", TCP, 80, Own},
		{"10.9.9.8", TCP, 80, ""},
		{"127.0.0.1", TCP, 2019, Own}, {"0.0.0.0", TCP, 2019, Own}, {"::ffff:127.0.0.1", TCP, 2019, Own},
		{"2002:7f00:1::", TCP, 2019, Own},
		{"127.0.0.2", TCP, 2019, ""}, {"10.9.9.9", TCP, 2019, ""}, {"64:ff9b::a09:909", TCP, 80, Own},
	} {
		for _, backend := range []string{"shop/web/80", "shop/name/80", "default/kubernetes/443"} {
			if got := g.reason(backend, c.address, c.over, c.port); got != c.want {
				t.Errorf("%s %s:%d of %s is refused because of %q, want %q", c.over, c.address, c.port,
					backend, got, c.want)
			}
		}
	}
	g.AllowOwnAddresses("asks")
	for at, want := range map[string]Reason{"10.9.9.9:80": "", "10.9.9.9:81": "", "127.0.0.1:80": "",
		"127.0.0.1:2019": Own, "10.9.9.9:82": ""} {
		to := netip.MustParseAddrPort(at)
		if got := g.reason("asks", to.Addr().String(), TCP, to.Port()); got != want {
			t.Errorf("%s is refused because of %q for what may ask this process, want %q", at, got, want)
		}
	}
	g.Configure(Options{})
	if got := g.reason("asks", "127.0.0.1", TCP, 80); got != Loopback {
		t.Errorf("loopback is refused because of %q for what may ask this process", got)
	}
	g.Listen("options", nil)
	if got := g.reason("shop/web/80", "10.9.9.9", TCP, 80); got != "" {
		t.Errorf("a port that is closed is refused because of %q", got)
	}
}

func TestNames(t *testing.T) {
	g := NewGuard()
	g.SetName("shop/name/80", true)
	for _, c := range []struct {
		options     Options
		name, slice Reason
	}{
		{Options{}, Loopback, Loopback},
		{Options{Allow: networks(t, "127.0.0.0/8")}, Loopback, ""},
		{Options{AnyName: true}, "", Loopback},
		{Options{AnyName: true, Deny: networks(t, "127.0.0.0/8")}, Denied, Denied},
	} {
		g.Configure(c.options)
		if got := g.reason("shop/name/80", "127.0.0.1", TCP, 80); got != c.name {
			t.Errorf("%+v: a name is refused because of %q", c.options, got)
		}
		if got := g.reason("shop/web/80", "127.0.0.1", TCP, 80); got != c.slice {
			t.Errorf("%+v: an endpoint is refused because of %q", c.options, got)
		}
	}
	g.SetName("shop/name/80", false)
	g.Configure(Options{AnyName: true})
	if got := g.reason("shop/name/80", "127.0.0.1", TCP, 80); got != Loopback {
		t.Errorf("what is no name any more is refused because of %q", got)
	}
}

// TestMachine checks that the list of this machine's addresses is refreshed, and that the last list is used if this
// fails.
func TestMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken, other atomic.Bool
		broken.Store(true)
		m := newMachine(func() ([]netip.Addr, error) {
			switch {
			case broken.Load():
				return nil, errors.New("no")
			case other.Load():
				return addresses("10.0.0.2"), nil
			}
			return addresses("10.0.0.1"), nil
		})
		expect := func(text string, want bool) {
			t.Helper()
			if got := m.has(netip.MustParseAddr(text)); got != want {
				t.Errorf("%s is of this machine: %v", text, got)
			}
		}
		// If the addresses are unknown, every address counts as the machine's own.
		expect("10.0.0.9", true)
		broken.Store(false)
		expect("10.0.0.1", true)
		expect("10.0.0.9", false)
		other.Store(true)
		time.Sleep(lifetime) //nolint:forbidigo // It is the clock of synctest.
		expect("10.0.0.2", true)
		expect("10.0.0.1", false)
		broken.Store(true)
		time.Sleep(lifetime) //nolint:forbidigo // It is the clock of synctest.
		expect("10.0.0.2", true)
		expect("10.0.0.9", false)
	})
}

// TestDial checks that there is no connection to a forbidden address, whether it is an IP address or the result of a
// look-up.
func TestDial(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	g := NewGuard()
	for _, host := range []string{"127.0.0.1", "::ffff:127.0.0.1", "0.0.0.0", "localhost", "fe80::1%lo"} {
		conn, err := g.Dial(t.Context(), net.Dialer{}, "shop/web/80", net.JoinHostPort(host, port))
		var refusal *Refusal
		if !errors.As(err, &refusal) {
			t.Errorf("dialling %s: %v", host, err)
		}
		if conn != nil {
			conn.Close()
		}
	}
	g.Configure(Options{Allow: networks(t, "127.0.0.0/8")})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		conn, err := g.Dial(t.Context(), net.Dialer{}, "shop/web/80", net.JoinHostPort(host, port))
		if err != nil {
			t.Errorf("dialling %s: %v", host, err)
			continue
		}
		conn.Close()
	}
}

// BenchmarkCheck measures the check for each new connection to an endpoint. Requests on open connections need no check.
func BenchmarkCheck(b *testing.B) {
	g := NewGuard()
	g.Listen("options", []Listening{{TCP, netip.Addr{}, 80, 80, true}, {TCP, netip.Addr{}, 443, 443, true},
		{TCP, netip.Addr{}, 10000, 12000, false}})
	for name, to := range map[string]string{"other port": "10.244.1.7:8080", "port of ours": "10.244.1.7:80",
		"IPv6": "[fd00:10:244::7]:8080"} {
		b.Run(name, func(b *testing.B) {
			address := netip.MustParseAddrPort(to)
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Check("shop/web/80", TCP, address); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
