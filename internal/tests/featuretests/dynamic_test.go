package featuretests

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
)

// withSite returns the adapted Caddyfile of a controller with these options, and a site of the administrator.
func (in *ingress) withSite(options, address, directives string) []byte {
	in.Helper()
	_, port, _ := net.SplitHostPort(address)
	text := fmt.Sprintf("{\nadmin %s\nauto_https off\nk8singress {\nhttps off\nmanifests %s\n%s\n}\n}\n"+
		"http://:%s {\nbind 127.0.0.1\n%s\n}\n", in.admin, in.folder, options, port, directives)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(onThisMachine(text)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	return config
}

// dynamic is the directive for a site that sends all requests to a Service.
func dynamic(service string) string {
	return "reverse_proxy {\ndynamic k8singress " + service + "\n}\n"
}

// TestDynamicUpstreams checks that a site reaches the endpoints of Services without any Ingress.
func TestDynamicUpstreams(t *testing.T) {
	in := newIngress(t)
	oneIP, onePort := backend(t, "one")
	twoIP, twoPort := backend(t, "two")
	in.write("one.yaml", service("one", onePort, oneIP))
	fallback := strings.Replace(dynamic("default/gone:80"), "{", net.JoinHostPort(twoIP, twoPort)+" {", 1)
	in.reload(in.withSite("http off", in.http, "handle /fallback* {\n"+fallback+"}\n"+
		"handle /gone* {\n"+dynamic("default/gone:80")+"}\n"+
		"handle /port* {\n"+dynamic("default/one:admin")+"}\n"+dynamic("default/one:http")))
	in.expect("shop.example", "/early", http.StatusOK, "one /early")
	in.awaitReady()
	for path, want := range map[string]int{"/gone": http.StatusServiceUnavailable,
		"/port": http.StatusServiceUnavailable, "/fallback": http.StatusOK} {
		in.expect("shop.example", path, want, "")
	}
	in.awaitVerdict("Service/default/gone", "ServiceNotFound", "the Service default/gone does not exist")
	in.awaitVerdict("Service/default/one", "InvalidBackend", "the Service default/one has no TCP port admin")

	in.write("one.yaml", service("one", twoPort, twoIP))
	in.becomes("shop.example", "/moved", http.StatusOK, "two /moved")
	in.write("one.yaml", strings.Replace(service("one", twoPort, twoIP), "- addresses: ["+twoIP+"]",
		"- addresses: ["+twoIP+"]\n  conditions: {ready: false}", 1))
	in.becomes("shop.example", "/unready", http.StatusServiceUnavailable, "")
	in.awaitVerdict("Service/default/one", "NoEndpoints", "has no ready endpoints")
	in.write("gone.yaml", service("gone", onePort, oneIP))
	in.becomes("shop.example", "/gone", http.StatusOK, "one /gone")
}

// TestForbiddenDynamicUpstreams checks that reach_deny applies to the endpoints of a site, also if it changes.
func TestForbiddenDynamicUpstreams(t *testing.T) {
	in := newIngress(t)
	ip, port := backend(t, "one")
	in.write("one.yaml", service("one", port, ip))
	for _, c := range []struct {
		options, body string
		status        int
	}{
		{options: "reach_deny " + ip, status: http.StatusServiceUnavailable},
		{status: http.StatusOK, body: "one /"},
		{options: "reach_deny " + ip, status: http.StatusServiceUnavailable},
	} {
		in.reload(in.withSite("http off\nreach_allow 127.0.0.0/8\n"+c.options, in.http, dynamic("default/one:http")))
		in.awaitReady()
		in.becomes("shop.example", "/", c.status, c.body)
		if c.options != "" {
			in.awaitVerdict("EndpointSlice/default/one-1", "AddressNotAllowed", "the option reach_deny contains it")
		}
	}
}

// TestDynamicUpstreamsNeedTheApp checks the error for a site without the controller.
func TestDynamicUpstreamsNeedTheApp(t *testing.T) {
	for service, want := range map[string]string{
		"default/one:80": "reading the Service default/one:80: the app k8singress is not configured",
		"one":            "is not namespace/name",
	} {
		err := caddy.Load(fmt.Appendf(nil, `{"admin":{"disabled":true},"apps":{"http":{"servers":{"site":{"routes":[{
			"handle":[{"handler":"reverse_proxy","dynamic_upstreams":{"source":"k8singress","service":%q}}]}]}}}}}`,
			service), true)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", service, err)
		}
	}
}

// TestDynamicUpstreamsUnderReloads checks that requests for a site, and for a host of an Ingress whose chain has the
// handler, reach the endpoints while Caddy loads configurations with other Services.
func TestDynamicUpstreamsUnderReloads(t *testing.T) {
	in := newIngress(t)
	ip, port := backend(t, "one")
	in.write("manifests.yaml", class+service("one", port, ip)+service("two", port, ip)+service("three", port, ip)+
		annotated("one", "a.example", "three", "k8singress.io/chains", "shop"))
	names := []string{"default/one:80", "default/two:http"}
	var configs [][]byte
	for _, name := range names {
		options := "http " + in.http + "\nchain shop {\nheader X-Service " + name + "\n" + dynamic(name) + "}"
		configs = append(configs, in.withSite(options, in.byCaddy, dynamic(name)))
	}
	in.reload(configs[0])
	in.awaitReady()
	l := in.newLoad()
	l.keeps("a host, kept connections", false, 2)
	l.renews("a host, new connections", false)
	l.repeats("a site", func() error { return l.askSite(in.byCaddy) })
	for i := range 20 {
		next := (i + 1) % len(configs)
		if err := caddy.Load(configs[next], true); err != nil {
			t.Fatal(err)
		}
		l.awaitEach()
		// Caddy's reverse_proxy writes a global variable when it is provisioned. So the chain must be provisioned
		// before Caddy provisions the next site.
		in.eventually("the chain of the configuration", func() error {
			if got := in.get("a.example", "/").header.Get("X-Service"); got != names[next] {
				return fmt.Errorf("it is the chain of %q", got)
			}
			return nil
		})
	}
	l.ends()
}

// askSite sends a request to a site of Caddy. It returns an error for each response that is not 200. A connection
// without a response is no error, because Caddy resets connections that its previous listener has not accepted.
func (l *load) askSite(address string) error {
	client := http.Client{Timeout: deadline, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + address + "/")
	if err != nil {
		return nil //nolint:nilerr // See above.
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// upstream is an entry of /reverse_proxy/upstreams.
type upstream struct {
	Address     string
	NumRequests int `json:"num_requests"`
	Fails       int
}

// TestListOfUpstreams checks that Caddy's list of upstreams contains the endpoints of Ingresses and Caddy's own
// upstreams, each address once.
func TestListOfUpstreams(t *testing.T) {
	in := newIngress(t)
	release, asked := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-release
	}))
	t.Cleanup(server.Close)
	slow := server.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(slow)
	const closed, own = "127.0.0.1:1", "127.0.0.1:2"
	in.write("manifests.yaml", class+service("slow", port, "127.0.0.1")+service("closed", "1", "127.0.0.1")+
		rule("slow", "slow.example", "Prefix", "/", "slow")+rule("closed", "closed.example", "Prefix", "/", "closed"))
	in.reload(in.withSite("http "+in.http, in.byCaddy, "reverse_proxy "+own+" "+closed))
	in.awaitReady()
	// expect checks the entries of the three addresses. Caddy keeps the dynamic upstreams of other tests for an hour.
	expect := func(want ...upstream) {
		t.Helper()
		var got []upstream
		in.adminJSON("/reverse_proxy/upstreams", &got)
		got = slices.DeleteFunc(got, func(u upstream) bool {
			return !slices.Contains([]string{closed, own, slow}, u.Address)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the upstreams are %v, want %v", got, want)
		}
	}
	expect(upstream{Address: closed}, upstream{Address: own}, upstream{Address: slow})
	in.expect("closed.example", "/", http.StatusBadGateway, "")
	ended := make(chan answer)
	go func() { ended <- in.get("slow.example", "/") }()
	<-asked
	// Each request to an endpoint is tried three times.
	expect(upstream{Address: closed, Fails: 3}, upstream{Address: own}, upstream{Address: slow, NumRequests: 1})
	close(release)
	<-ended
}
