package featuretests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/render"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// serveModel serves a configuration of the model through its document. The only backend has one endpoint.
func (in *ingress) serveModel(endpoint string, config *ir.Config, options ...string) {
	in.Helper()
	renderer := &render.Renderer{Endpoints: func(*ir.Backend) []string { return []string{endpoint} }}
	document, err := json.Marshal(
		map[string]any{"apps": map[string]any{"k8singress": map[string]any{"live": renderer.Live(config)}}})
	if err != nil {
		in.Fatal(err)
	}
	in.load(strings.Join(append([]string{"source none"}, options...), "\n"))
	if status, text := in.put(document); status != http.StatusOK {
		in.Fatalf("PUT: %d %s", status, text)
	}
}

// TestFilters checks the effect of each filter of the model on a request for /a/x?q and on its response.
func TestFilters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Own", "endpoint")
		fmt.Fprintf(w, "%s%s mine=%q more=%q from=%s", r.Host, r.URL.RequestURI(), r.Header["X-Mine"],
			r.Header["X-More"],
			r.Header.Get("X-Forwarded-Host"))
	}))
	defer server.Close()
	const plain = `mine=["client"] more=[] from=`
	changes := ir.HeaderChanges{
		Set:    []ir.Header{{Name: "x-own", Value: "{env.HOME}"}},
		Add:    []ir.Header{{Name: "X-More", Value: "1"}, {Name: "X-More", Value: "2"}},
		Remove: []string{"x-mine"},
	}
	cases := map[string]struct {
		filters []ir.Filter
		status  int
		// body is the text that the endpoint returns, which contains the request path. location is the target of a
		// redirect.
		body, location, own string
	}{
		"none.example": {nil, 200, "none.example/a/x?q " + plain + "none.example", "", "endpoint"},
		"prefix.example": {[]ir.Filter{ir.URLRewrite{Prefix: "/b/c"}}, 200,
			"prefix.example/b/c/x?q " + plain + "prefix.example", "", "endpoint"},
		"host.example": {
			[]ir.Filter{ir.URLRewrite{Host: "other.example"}}, 200, "other.example/a/x?q " + plain + "host.example",
			"", "endpoint",
		},
		"response.example": {
			[]ir.Filter{ir.ResponseHeaders{HeaderChanges: changes}}, 200,
			"response.example/a/x?q " + plain + "response.example", "", "{env.HOME}",
		},
		"both.example": {
			[]ir.Filter{ir.ResponseHeaders{HeaderChanges: changes}, ir.Unavailable}, 503, "", "", "{env.HOME}",
		},
		"port.example": {
			[]ir.Filter{ir.Redirect{Status: 301, Scheme: "https", Port: 8443, Prefix: "/"}}, 301, "",
			"https://port.example:8443/x?q", "",
		},
		"direct.example": {[]ir.Filter{ir.NotFound}, 404, "", "", ""},
		"secure.example": {[]ir.Filter{ir.HTTPSRedirect{Status: 308}}, 308, "", "https://secure.example/a/x?q", ""},
	}
	backend := &ir.Backend{ID: "shop/web/80"}
	config := &ir.Config{Backends: []*ir.Backend{backend}}
	for host, c := range cases {
		config.VirtualHosts = append(config.VirtualHosts, &ir.VirtualHost{Host: host, Routes: []*ir.Route{{
			Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/a"}}, Filters: c.filters,
			Backends: ir.To(backend),
		}}})
	}
	in := newIngress(t)
	in.serveModel(server.Listener.Addr().String(), config)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for host, c := range cases {
			if host == "secure.example" && in.secure() {
				continue // It would be there.
			}
			got := in.sendBy(in.client, in.origin(host)+"/a/x?q", http.MethodGet, nil, "X-Mine: client")
			location, own := got.header.Get("Location"), got.header.Get("X-Own")
			if got.status != c.status || got.body != c.body || location != c.location || own != c.own {
				t.Errorf("%s: %d %q, Location %q, X-Own %q; want %+v", host, got.status, got.body, location, own, c)
			}
		}
	})
}

// TestFiltersOfABackend checks that one weighted backend of a route has its own filters, and that one of them may
// reject the request.
func TestFiltersOfABackend(t *testing.T) {
	_, port := backend(t, "web")
	web, none := &ir.Backend{ID: "shop/web/80"}, &ir.Backend{ID: "shop/none/80", Missing: true}
	in := newIngress(t)
	in.serveModel("127.0.0.1:"+port, &ir.Config{Backends: []*ir.Backend{web, none}, ListenerGroup: ir.ListenerGroup{
		VirtualHosts: []*ir.VirtualHost{{Host: "shop.example", Routes: []*ir.Route{{
			Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}},
			Backends: []ir.WeightedBackend{
				{Backend: web, Weight: 1, Filters: []ir.Filter{ir.URLRewrite{Target: "/first"}}},
				{Backend: web, Weight: 2, Filters: []ir.Filter{ir.URLRewrite{Target: "/second"}}},
				{Backend: none, Weight: 1, Filters: []ir.Filter{ir.InvalidBackend}},
			},
		}}}},
	}})
	counts := map[string]int{}
	for range 400 {
		got := in.get("shop.example", "/x")
		counts[fmt.Sprint(got.status, " ", got.body)]++
	}
	for answer, want := range map[string]int{"200 web /first": 100, "200 web /second": 200, "500 ": 100} {
		if got := counts[answer]; got < want-3 || got > want+3 {
			t.Errorf("%d of 400 answers are %s, want %d; all are %v", got, answer, want, counts)
		}
	}
}
