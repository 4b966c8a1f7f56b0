package live_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
)

func init() {
	caddy.RegisterModule(rerouting{})
	caddy.RegisterModule(intrusive{})
	caddy.RegisterModule(echoing{})
}

// rerouting is a Caddy handler that runs a filter, which asks for the route of the path /b.
type rerouting struct{}

func (rerouting) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_rerouting", New: func() caddy.Module { return new(rerouting) }}
}

func (r rerouting) ServeHTTP(w http.ResponseWriter, of *http.Request, next caddyhttp.Handler) error {
	return live.ChainRunFrom(of.Context()).Apply(r, w, of, next)
}

// Apply implements filter.Filter.
func (rerouting) Apply(x *exchange.Exchange) (bool, error) {
	x.SetPath("/b")
	return false, exchange.ErrReroute
}

// intrusive is a Caddy handler that changes whatever it can for the next handler.
type intrusive struct{}

func (intrusive) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_intrusive", New: func() caddy.Module { return new(intrusive) }}
}

func (intrusive) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	w.Header().Set("X-First", "a")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	r.Header.Set("X-Input", "a")
	r.Method, r.Host = http.MethodPut, "backend.example"
	r.ContentLength, r.Body = 2, io.NopCloser(strings.NewReader("no"))
	return next.ServeHTTP(w, r)
}

// echoing is a Caddy handler that responds with what it gets.
type echoing struct{}

func (echoing) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_echoing", New: func() caddy.Module { return new(echoing) }}
}

func (echoing) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.URL.Query().Has("fail") {
		return caddyhttp.Error(http.StatusConflict, errors.Join(err, r.Context().Err()))
	}
	_, err = fmt.Fprintf(w, "%s %s%s %s, X-Input: %s, %v", r.Method, r.Host, r.URL, body, r.Header.Get("X-Input"),
		r.Context().Err())
	return err
}

// TestRerouteInCaddyHandlers checks that a Caddy handler in front of a filter that asks for another route leaves
// nothing behind, except the header fields of the request.
func TestRerouteInCaddyHandlers(t *testing.T) {
	const handlers = `"handle":[{"handler":"test_intrusive"},{"handler":"test_rerouting"}]`
	for name, chain := range map[string]string{
		"handlers": `[{` + handlers + `}]`,
		"matchers": `[{"match":[{"method":["POST"]}],"handle":[{"handler":"test_intrusive"}]},` +
			`{"match":[{"method":["PUT"]}],"handle":[{"handler":"test_rerouting"}]}]`,
		"a subroute": `[{"handle":[{"handler":"subroute","routes":[{` + handlers + `}]}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			update(t, table, hostOf(
				&document.Route{Type: "prefix", Path: "/a", Destination: document.Destination{Chain: []byte(chain)}},
				&document.Route{Type: "prefix", Path: "/b", Destination: document.Destination{
					Chain: json.RawMessage(`[{"handle":[{"handler":"test_echoing"}]}]`)}},
			))
			w, err := post(table, "/a?x=1", "text")
			const want = "POST shop.example/b?x=1 text, X-Input: a, <nil>"
			if got := w.Body.String(); err != nil || got != want || w.Header().Get("X-First") != "" {
				t.Errorf("%q, %v, fields %v, want %q", got, err, w.Header(), want)
			}
			if w, err = post(table, "/a?fail", "text"); exchange.StatusOf(err) != http.StatusConflict {
				t.Errorf("a failure: %d, %v", w.Code, err)
			}
		})
	}
}

func post(table *live.Table, path, body string) (*httptest.ResponseRecorder, error) {
	r := httptest.NewRequest(http.MethodPost, "http://shop.example"+path, strings.NewReader(body))
	w := httptest.NewRecorder()
	_, err := serve(table, w, caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{}))
	return w, err
}

// TestProgramGetsAnotherRoute checks that a rewrite of a program searches the route of the new path, and that the
// variables of the program stay.
func TestProgramGetsAnotherRoute(t *testing.T) {
	program := func(path, steps string) *document.Route {
		return &document.Route{Type: "prefix", Path: path, Destination: document.Destination{
			Chain: fmt.Appendf(nil, `[{"handle":[{"handler":"k8singress_program","steps":[%s]}]}]`, steps)}}
	}
	const says = `{"return":{"status":200,"has_text":true,"text":"$location_path $uri $request_uri $args $v"}}`
	table := newTable(t)
	update(t, table, hostOf(
		program("/last", `{"set":{"name":"v","value":"1"}},`+
			`{"rewrite":{"pattern":"^/last/(.*)","target":"/b/$1?y=2","flag":"last"}},`+says),
		program("/none", `{"rewrite":{"pattern":"^/none/(.*)","target":"/b/$1?"}},{"set":{"name":"v","value":"2"}}`),
		program("/break", `{"rewrite":{"pattern":"^/break/(.*)","target":"/b/$1","flag":"break"}},`+says),
		program("/cycle", `{"rewrite":{"pattern":"^","target":"/cycle","flag":"last"}}`),
		program("/b", says),
	))
	for path, want := range map[string]string{
		"/last/a?x=1":  "/b /b/a /last/a?x=1 y=2&x=1 1",
		"/last//a":     "/b /b/a /last//a y=2 1",
		"/none/a?x=1":  "/b /b/a /none/a?x=1  2",
		"/last/a%2Fb":  "/b /b/a/b /last/a%2Fb y=2 1",
		"/break/a?x=1": "error 404",
		"/cycle":       "error 500",
		"//last/a":     "error 400",
	} {
		w, err := post(table, path, "")
		got := w.Body.String()
		if err != nil {
			got = fmt.Sprintf("error %d", exchange.StatusOf(err))
		}
		if got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

// TestProgramGetsRouteOfAnotherNamespace checks that a route of another namespace only has the variables of the
// program that runs for both namespaces, and that this program does not run again.
func TestProgramGetsRouteOfAnotherNamespace(t *testing.T) {
	const set = `{"set":{"name":"v","value":"1"}},`
	route := func(origin, path, server, steps string) *document.Route {
		chain := fmt.Sprintf(`{"handler":"k8singress_program","steps":[%s]}`, steps)
		if server != "" {
			chain = fmt.Sprintf(`{"handler":"k8singress_program","server":true,"steps":[`+
				`{"set":{"name":"s","value":"%s$uri$v"}}]},%s`, server, chain)
		}
		return &document.Route{Type: "prefix", Path: path, Origin: "Ingress/" + origin + "/web",
			Destination: document.Destination{Chain: []byte(`[{"handle":[` + chain + `]}]`)}}
	}
	rewrite := func(to string) string {
		return `{"rewrite":{"pattern":"^(?<g>.*)","target":"` + to + `","flag":"last"}}`
	}
	const says = `{"return":{"status":200,"has_text":true,"text":"$uri v=$v g=$g 1=$1 s=$s"}}`
	table := newTable(t)
	update(t, table, hostOf(
		route("a", "/none", "", set+rewrite("/b")),
		route("a", "/own", "", set+rewrite("/a")),
		route("a", "/there", "", set+rewrite("/b-there")),
		route("a", "/same", "all", set+`{"set":{"name":"s","value":"forged"}},`+rewrite("/b-all")),
		route("a", "/other", "owner", set+rewrite("/b-all")),
		route("a", "/twice", "", set+rewrite("/b-back")),
		route("a", "/a", "", says),
		route("b", "/b", "", says),
		route("b", "/b-there", "all", says),
		route("b", "/b-all", "all", says),
		route("b", "/b-back", "", rewrite("/a")),
	))
	for path, want := range map[string]string{
		"/none":  "/b v= g= 1= s=",
		"/own":   "/a v=1 g=/own 1=/own s=",
		"/there": "/b-there v= g= 1= s=all/b-there",
		"/same":  "/b-all v= g= 1= s=all/same",
		"/other": "/b-all v= g= 1= s=all/b-all",
		"/twice": "/a v= g= 1= s=",
	} {
		if w, err := post(table, path, ""); err != nil || w.Body.String() != want {
			t.Errorf("%s: %q, %v, want %q", path, w.Body, err, want)
		}
	}
}
