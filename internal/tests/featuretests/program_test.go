package featuretests

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// sitePrograms is the program of all hosts of TestPrograms. Its steps depend on the path.
var sitePrograms = ir.Program{
	Steps: []ir.Step{
		onPath("/close", ir.Step{Return: &ir.Return{Status: 444}}),
		onPath("/text", ir.Step{Return: &ir.Return{Status: 200, Text: "of $host", HasText: true}}),
		onPath("/away", ir.Step{Return: &ir.Return{Status: 302, Text: "/there?$args", HasText: true}}),
		onPath("/forbidden", ir.Step{Return: &ir.Return{Status: 403}}),
		onPath("/inside", ir.Step{Rewrite: &ir.Rewrite{Pattern: "^/(.*)", Target: "/kept?was=$1", Flag: ir.BreakFlag}}),
		{Rewrite: &ir.Rewrite{Pattern: "^/old/(.*)", Target: "/new/$1", Flag: ir.Last}},
	},
	Directives: ir.Directives{
		EndpointHeaders: []ir.Header{
			{Name: "Host", Value: "$request_method.example"}, {Name: "X-Forwarded-Host", Value: "seen-$host"},
			{Name: "Accept-Language"},
		},
		Hide:       []string{"X-Powered-By"},
		AddHeaders: []ir.AddedHeader{{Name: "X-Added", Value: "$upstream_http_x_powered_by,$upstream_status"}},
		MoreHeaders: []ir.MoreHeaders{
			{Set: []ir.Header{{Name: "X-Status", Value: "$status"}}}, {Clear: []string{"Server"}},
		},
	},
}

func onPath(path string, then ir.Step) ir.Step {
	return ir.Step{If: &ir.If{Condition: ir.Condition{Variable: "uri", Operator: ir.Equal, Value: path},
		Steps: []ir.Step{then}}}
}

// TestPrograms checks programs in each version of HTTP, also if Caddy handlers are in front of them or behind them.
func TestPrograms(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Powered-By"] = []string{"test"}
		fmt.Fprint(w, r.Host, " ", r.Header.Get("X-Forwarded-Host"), " ", r.Header["Accept-Language"], r.RequestURI)
	}))
	defer server.Close()
	web := &ir.Backend{ID: "shop/web/80"}
	config := &ir.Config{Backends: []*ir.Backend{web}}
	handlers := ir.HandlerChain{Name: "own"}
	for host, filters := range map[string][]ir.Filter{
		"a.example": {sitePrograms}, "after.example": {handlers, sitePrograms},
		"before.example": {sitePrograms, handlers},
	} {
		route := func(path string, filters ...ir.Filter) *ir.Route {
			return &ir.Route{Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: path}},
				Filters: filters, Backends: ir.To(web)}
		}
		config.VirtualHosts = append(config.VirtualHosts, &ir.VirtualHost{Host: host, Routes: []*ir.Route{
			route("/", append(filters, ir.URLRewrite{Target: "/rewritten"})...), route("/new"),
		}})
	}
	in := newIngress(t)
	in.serveModel(server.Listener.Addr().String(), config, "chain own {\nheader X-Own yes\n}")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, host := range config.VirtualHosts {
			in.runsPrograms(t, host.Host)
		}
	})
}

// runsPrograms checks the responses of a host of TestPrograms.
func (in *ingress) runsPrograms(t *testing.T, host string) {
	t.Helper()
	for path, want := range map[string]string{
		"/a?b":       "200 GET.example seen-" + host + " []/rewritten?b added=[test,200] status=[200] by=[]",
		"/inside?b":  "200 GET.example seen-" + host + " []/kept?was=inside&b added=[test,200] status=[200] by=[]",
		"/text":      "200 of " + host + " added=[,] status=[200] by=[]",
		"/forbidden": "403  added=[] status=[403] by=[]",
	} {
		got := in.sendBy(in.client, in.origin(host)+path, http.MethodGet, nil, "Accept-Language: de")
		text := fmt.Sprint(got.status, " ", got.body, " added=", got.header["X-Added"],
			" status=", got.header["X-Status"],
			" by=", got.header["X-Powered-By"])
		if text != want || got.header.Get("Server") != "" {
			t.Errorf("%s%s: %s, Server %q, want %s", host, path, text, got.header.Get("Server"), want)
		}
	}
	if got := in.get(host, "/old/x?q"); got.body != host+" "+host+" []/new/x?q" || got.header["X-Status"] != nil {
		t.Errorf("%s: the new route responds with %q and the fields %v", host, got.body, got.header)
	}
	got := in.get(host, "/away?b=c")
	if location := got.header.Get("Location"); got.status != 302 || location != in.origin(host)+"/there?b=c" {
		t.Errorf("%s: %d with Location %q", host, got.status, location)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.origin(host)+"/close", nil)
	if err != nil {
		t.Fatal(err)
	}
	if response, err := in.client.Do(request); err == nil {
		response.Body.Close()
		t.Errorf("%s: a request that must not get a response gets %s", host, response.Status)
	}
}
