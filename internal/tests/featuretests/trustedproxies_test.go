package featuretests

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func init() { caddy.RegisterModule(new(changingProxies)) }

// changingProxies is a source of trusted proxies that changes over time, like modules that get the networks of a CDN.
type changingProxies struct{}

// proxiesNow is the network that changingProxies returns.
var proxiesNow atomic.Pointer[netip.Prefix]

func (*changingProxies) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.ip_sources.changing", New: func() caddy.Module { return new(changingProxies) }}
}

func (*changingProxies) UnmarshalCaddyfile(*caddyfile.Dispenser) error { return nil }

func (*changingProxies) GetIPRanges(r *http.Request) []netip.Prefix {
	if r.RemoteAddr == "" || r.Header.Get("X-Forwarded-For") == "" {
		panic("the module got an incomplete request")
	}
	return []netip.Prefix{*proxiesNow.Load()}
}

func setProxies(network string) {
	prefix := netip.MustParsePrefix(network)
	proxiesNow.Store(&prefix)
}

// behindProxies runs the controller with options of Caddy's global option servers and with keys of the ConfigMap. The
// Ingress of a.example allows only clients in 9.9.9.0/24, and its chain responds with the client that Caddy sees. A
// site at the returned address serves the same.
func behindProxies(t *testing.T, servers string, keys ...string) (in *ingress, site string) {
	t.Helper()
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("X-Real-Ip"), " ", r.Header.Get("X-Forwarded-For"))
	})
	in, site = newIngress(t), fixture.Address(t)
	in.write("manifests.yaml", class+service("one", port, ip)+global(append(keys, "keep-alive: '75'")...)+
		annotated("a", "a.example", "one", "k8singress.io/chains", "seen", "whitelist-source-range", "9.9.9.0/24",
			"ssl-redirect", "false"))
	in.loadCaddyfile(fmt.Sprintf("{\nadmin %s\nauto_https off\nservers {\n%s\n}\nk8singress {\nmanifests %s\nhttp %s\n"+
		"https %s\nh2c\nconfigmap default/global\nchain seen {\nheader X-Chain {client_ip}\n}\n}\n}\n"+
		"http://:%s {\nbind 127.0.0.1\nheader >X-Site {client_ip}\nk8singress\n}\n",
		in.admin, servers, in.folder, in.http, in.https, strings.TrimPrefix(site, "127.0.0.1:")))
	in.awaitReady()
	return in, site
}

// TestTrustedProxies checks that the trusted proxies of Caddy's global option servers determine the client of a request
// for endpoints, access rules, chains and sites, on our servers and in sites with the directive. If the ConfigMap names
// proxies, too, only proxies in both lists are trusted.
func TestTrustedProxies(t *testing.T) {
	list := []string{"X-Foo: 9.9.9.9", "X-Forwarded-For: 6.6.6.6, 9.9.9.8", "X-Forwarded-For: 127.0.0.3"}
	const trusted = "trusted_proxies static 127.0.0.0/8\n"
	for name, c := range map[string]struct {
		servers, keys string
		// want is the client, or "" if a client at 127.0.0.1 is rejected.
		want, verdict string
	}{
		"the first address is not allowed": {servers: trusted},
		"headers":                          {servers: trusted + "client_ip_headers X-None X-Foo", want: "9.9.9.9"},
		"strict":                           {servers: trusted + "trusted_proxies_strict", want: "9.9.9.8"},
		"another proxy":                    {servers: "trusted_proxies static 10.0.0.0/8\ntrusted_proxies_strict"},
		"from the right with the ConfigMap": {trusted, `use-forwarded-headers: "true"`, "9.9.9.8",
			"trusted_proxies of Caddy's global option servers names proxies, too"},
		"only the proxies in both": {trusted + "trusted_proxies_strict", "proxy-real-ip-cidr: 10.0.0.0/8", "",
			"trusted_proxies of Caddy's global option servers names proxies, too"},
		"the header of the ConfigMap": {trusted, `enable-real-ip: "true";forwarded-for-header: X-Foo`, "9.9.9.9",
			"trusted_proxies of Caddy's global option servers names proxies, too"},
	} {
		t.Run(name, func(t *testing.T) {
			in, site := behindProxies(t, c.servers, strings.Split(c.keys, ";")...)
			in.byEachVersion(t, func(_ *testing.T, in *ingress) { in.seesClient(c.want, list) })
			in.http = site
			in.seesClient(c.want, list)
			if c.verdict != "" {
				in.awaitVerdict("ConfigMap/default/global", "InvalidEntry", c.verdict)
			} else if got := in.problems("ConfigMap/default/global"); len(got) > 0 {
				t.Errorf("the ConfigMap has the problems %v", got)
			}
		})
	}
}

// TestChangingTrustedProxies checks that a module whose trusted proxies change over time is asked for each request.
func TestChangingTrustedProxies(t *testing.T) {
	setProxies("10.0.0.0/8")
	in, site := behindProxies(t, "trusted_proxies changing")
	sites := *in
	sites.http = site
	list := []string{"X-Forwarded-For: 9.9.9.7"}
	for _, c := range []struct{ network, want string }{
		{"10.0.0.0/8", ""}, {"127.0.0.0/8", "9.9.9.7"}, {"10.0.0.0/8", ""},
	} {
		setProxies(c.network)
		in.byEachVersion(t, func(_ *testing.T, in *ingress) { in.seesClient(c.want, list) })
		sites.seesClient(c.want, list)
	}
}

// seesClient sends a request with header fields, and checks which address the endpoint, the chain and a site get. want
// is "" if the request must be rejected.
func (in *ingress) seesClient(want string, headers []string) {
	in.Helper()
	got := in.send(http.MethodGet, "/", nil, headers...)
	status, body := http.StatusOK, want+" "+want
	site := got.header.Get("X-Site")
	if want == "" {
		status, body, want = http.StatusForbidden, got.body, got.header.Get("X-Chain")
		if strings.HasPrefix(site, "9.9.9.") {
			in.Errorf("the site sees the client %s, which is allowed", site)
		}
		site = want
	}
	if got.status != status || got.body != body || got.header.Get("X-Chain") != want || site != "" && site != want {
		in.Errorf("got %d %q, chain %q, site %q; want %d %q", got.status, got.body, got.header.Get("X-Chain"), site,
			status, want)
	}
}
