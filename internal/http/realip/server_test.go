package realip_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// inside are the networks of the trusted proxies in TestServer.
var inside = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}

// TestServer checks the clients of requests to a Caddy server with trusted proxies, alone and together with the
// ConfigMap. The peer is 10.1.1.1 unless a case has another one.
func TestServer(t *testing.T) {
	list := http.Header{"X-Forwarded-For": {"bad, 6.6.6.6:80", "9.9.9.9, bad, 10.0.0.7"}, "X-Client": {"8.8.8.8"},
		"X-Forwarded-Proto": {"https"}}
	for name, c := range map[string]struct {
		server *realip.Server
		keys   ir.Clients
		peer   string
		header http.Header
		want   string
		full   string
	}{
		"first address":     {want: "6.6.6.6"},
		"without addresses": {header: http.Header{"X-Forwarded-For": {"unknown"}}, want: "10.1.1.1"},
		"strict":            {server: &realip.Server{Strict: true}, want: "9.9.9.9"},
		"strict, only proxies": {server: &realip.Server{Strict: true},
			header: http.Header{"X-Forwarded-For": {"10.0.0.8, 10.0.0.7"}}, want: "10.1.1.1"},
		"headers": {server: &realip.Server{Headers: []string{"X-None", "X-Client", "X-Forwarded-For"}},
			want: "8.8.8.8"},
		"strict, next header": {server: &realip.Server{Strict: true, Headers: []string{"X-Proxies", "X-Client"}},
			header: http.Header{"X-Proxies": {"10.0.0.7"}, "X-Client": {"8.8.8.8"}}, want: "8.8.8.8"},
		"another peer":     {peer: "192.0.2.1:99", want: "192.0.2.1"},
		"IPv4-mapped peer": {peer: "[::ffff:10.1.1.1]:99", want: "6.6.6.6"},
		"peer with a zone": {peer: "[2001:db8::1%eth0]:99", want: "6.6.6.6"},
		"appended": {keys: ir.Clients{AppendForwarded: true}, want: "6.6.6.6",
			full: "bad, 6.6.6.6:80, 9.9.9.9, bad, 10.0.0.7, 10.1.1.1"},

		"the ConfigMap trusts all": {keys: ir.Clients{UseForwarded: true},
			header: http.Header{"X-Forwarded-For": {"6.6.6.6, 9.9.9.9, 10.0.0.7"}}, want: "9.9.9.9"},
		"the ConfigMap, another peer": {keys: ir.Clients{UseForwarded: true}, peer: "192.0.2.1:99", want: "192.0.2.1"},
		"the ConfigMap trusts other peers": {keys: ir.Clients{UseForwarded: true, Trusted: []string{"10.2.0.0/16"}},
			want: "10.1.1.1"},
		"both name a part": {keys: ir.Clients{UseForwarded: true, Trusted: []string{"10.1.0.0/16", "9.0.0.0/8"}},
			header: http.Header{"X-Forwarded-For": {"6.6.6.6, 9.9.9.9"}}, want: "9.9.9.9"},
		"proxy-real-ip-cidr alone": {keys: ir.Clients{Trusted: []string{"10.2.0.0/16"}}, want: "10.1.1.1"},
		"for the PROXY protocol": {keys: ir.Clients{ProxyProtocol: true, Trusted: []string{"10.2.0.0/16"}},
			want: "6.6.6.6"},
		"header of the ConfigMap":     {keys: ir.Clients{UseForwarded: true, Header: "X-Client"}, want: "8.8.8.8"},
		"header of a key that is off": {keys: ir.Clients{Header: "X-Client"}, want: "6.6.6.6"},
		"header of the server": {server: &realip.Server{Headers: []string{"X-Forwarded-For", "X-Other"}},
			keys:   ir.Clients{UseForwarded: true, Header: "X-Client"},
			header: http.Header{"X-Forwarded-For": {"9.9.9.9"}, "X-Client": {"8.8.8.8"}}, want: "9.9.9.9"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.peer == "" {
				c.peer = "10.1.1.1:99"
			}
			if c.header == nil {
				c.header = list
			}
			if c.full == "" {
				c.full = c.want
			}
			if c.server == nil {
				c.server = new(realip.Server)
			}
			changing := &realip.Server{Strict: c.server.Strict, Headers: c.server.Headers,
				Networks: func(*http.Request) []netip.Prefix { return inside }}
			c.server.Fixed = inside
			for _, server := range []*realip.Server{c.server, changing} {
				policy, r := server.Under(realip.New(c.keys)), request(c.peer, false, c.header)
				got := policy.Of(r)
				if full := policy.ForwardedFor(r, &got); got.IP != c.want || full != c.full {
					t.Errorf("the client is %s, X-Forwarded-For %q; want %s and %q", got.IP, full, c.want, c.full)
				}
			}
		})
	}
}

// TestServerBelieves checks when the other X-Forwarded-* headers are trusted: not if the ConfigMap only trusts the
// address of the client.
func TestServerBelieves(t *testing.T) {
	header := http.Header{"X-Forwarded-For": {"9.9.9.9"}, "X-Forwarded-Proto": {"https"}}
	for want, keys := range map[bool]ir.Clients{true: {}, false: {RealIP: true}} {
		got := (&realip.Server{Fixed: inside}).Under(realip.New(keys)).Of(request("10.1.1.1:99", false, header))
		if got.IP != "9.9.9.9" || got.Believed != want || (got.Proto == "https") != want {
			t.Errorf("with %+v, got %+v", keys, got)
		}
	}
}

// TestServerOnUnixSocket checks that clients of Unix sockets are trusted if the server says so, and the ConfigMap does
// not name proxies.
func TestServerOnUnixSocket(t *testing.T) {
	header := http.Header{"X-Forwarded-For": {"9.9.9.9"}}
	for name, c := range map[string]struct {
		server *realip.Server
		keys   ir.Clients
		want   string
	}{
		"trusted":                 {&realip.Server{Unix: true}, ir.Clients{}, "9.9.9.9"},
		"not trusted":             {&realip.Server{Fixed: inside}, ir.Clients{}, ""},
		"trusted, with ConfigMap": {&realip.Server{Unix: true}, ir.Clients{UseForwarded: true}, ""},
	} {
		if got := c.server.Under(realip.New(c.keys)).Of(request("@", false, header)); got.IP != c.want {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestServerNames checks which addresses are treated as configured proxies. Networks that change are known after the
// first request.
func TestServerNames(t *testing.T) {
	proxy, other := netip.MustParseAddr("10.1.1.1"), netip.MustParseAddr("10.2.2.2")
	changing := &realip.Server{Networks: func(*http.Request) []netip.Prefix { return inside }}
	policy := changing.Under(realip.New(ir.Clients{}))
	if policy.Names(proxy) {
		t.Error("the networks are known before the first request")
	}
	policy.Of(request("10.1.1.1:99", false, http.Header{}))
	fixed := &realip.Server{Fixed: inside}
	for name, p := range map[string]*realip.Policy{
		"changing": policy, "fixed": fixed.Under(realip.New(ir.Clients{})),
		"the ConfigMap": fixed.Under(realip.New(ir.Clients{Trusted: []string{"10.1.0.0/16"}})),
		"PROXY protocol": (&realip.Server{}).Under(realip.New(ir.Clients{ProxyProtocol: true,
			Trusted: []string{"10.1.0.0/16"}})),
	} {
		wide := name == "changing" || name == "fixed"
		if !p.Names(proxy) || p.Names(other) != wide {
			t.Errorf("%s: the proxy is named: %v, another address: %v", name, p.Names(proxy), p.Names(other))
		}
	}
}

// TestServerFollowsConfigMap checks that a policy is computed once for each change of the ConfigMap, and that nothing
// changes without a server.
func TestServerFollowsConfigMap(t *testing.T) {
	server, one, two := &realip.Server{Fixed: inside}, realip.New(ir.Clients{}), realip.New(ir.Clients{RealIP: true})
	first := server.Under(one)
	if server.Under(one) != first || server.Under(two) == first {
		t.Error("the policy does not follow the ConfigMap")
	}
	if (*realip.Server)(nil).Under(one) != one {
		t.Error("without a server, the policy changes")
	}
}

// BenchmarkOf measures what it costs to find the client of a request.
func BenchmarkOf(b *testing.B) {
	for name, server := range map[string]*realip.Server{"without": nil, "fixed": {Fixed: inside}} {
		b.Run(name, func(b *testing.B) {
			r := request("10.1.1.1:99", false, http.Header{"X-Forwarded-For": {"9.9.9.9"}})
			base := realip.New(ir.Clients{})
			b.ReportAllocs()
			for b.Loop() {
				if c := server.Under(base).Of(r); c.IP == "" {
					b.Fatal("there is no client")
				}
			}
		})
	}
}
