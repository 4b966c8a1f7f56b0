package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/standard"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// newTable returns a table that can provision chains and is ready.
func newTable(t testing.TB) *live.Table {
	t.Helper()
	return tableWith(t, endpoints.NewTable())
}

// tableWith works like newTable, with backends that the test can change.
func tableWith(t testing.TB, backends *endpoints.Table) *live.Table {
	t.Helper()
	return tableOf(t, backends, trust.NewStore())
}

// tableOf works like tableWith, with a trust store that the test can change.
func tableOf(t testing.TB, backends *endpoints.Table, store *trust.Store) *live.Table {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx.Context = context.WithoutCancel(ctx.Context)
	table := live.NewTable(backends, store)
	if err := table.Adopt(ctx); err != nil {
		t.Fatal(err)
	}
	table.MarkReady()
	t.Cleanup(table.Close)
	return table
}

// textChain returns a chain that responds with a text.
func textChain(text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`[{"handle":[{"handler":"static_response","body":%q}]}]`, text))
}

func hostOf(routes ...*document.Route) *document.Host { return &document.Host{Routes: routes} }

func route(kind, path, answer string) *document.Route {
	return &document.Route{Type: kind, Path: path, Destination: document.Destination{Chain: textChain(answer)}}
}

// get returns the body of the response, or a word for another outcome.
func get(t testing.TB, table *live.Table, host, path string) string {
	t.Helper()
	w, outcome, err := ask(table, host, path)
	switch {
	case err != nil:
		t.Fatalf("%s%s: %v", host, path, err)
	case outcome == live.NotReady:
		return "not ready"
	case outcome == live.NoHost:
		return "none"
	}
	return w.Body.String()
}

// status returns the status of the response.
func status(t testing.TB, table *live.Table, host, path string) int {
	t.Helper()
	w, outcome, err := ask(table, host, path)
	if err != nil || outcome != live.Served {
		t.Fatalf("%s%s: outcome %d, %v", host, path, outcome, err)
	}
	return w.Code
}

func ask(table *live.Table, host, path string) (*httptest.ResponseRecorder, live.Outcome, error) {
	r := httptest.NewRequest(http.MethodGet, "http://x/", nil)
	r.Host, r.URL.Path = host, path
	w := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	outcome, err := serve(table, w, r)
	return w, outcome, err
}

// serve passes a net/http request to a table, as Caddy's servers do.
func serve(table *live.Table, w http.ResponseWriter, r *http.Request) (live.Outcome, error) {
	x := &exchange.Exchange{Request: new(message.Request), Writer: message.NewHTTPWriter(w, r),
		Clients: table.Clients()}
	x.FromHTTP(r)
	return table.Serve(x)
}

func TestHosts(t *testing.T) {
	table := newTable(t)
	table.Update(map[string]*document.Host{
		"a.example":      hostOf(route("prefix", "/", "a")),
		"*.w.example":    hostOf(route("prefix", "/", "wildcard")),
		"x.w.example":    hostOf(route("exact", "/only", "exact host")),
		"":               hostOf(route("prefix", "/", "anything")),
		"long.a.example": hostOf(route("prefix", "/", "long")),
	})
	for host, want := range map[string]string{
		"a.example": "a", "A.EXAMPLE": "a", "a.example.": "a", "a.example:8080": "a", "A.example.:443": "a",
		"y.w.example": "wildcard", "y.z.w.example": "anything", "w.example": "anything", ".w.example": "anything",
		"x.w.example": "none", "long.a.example": "long", "other": "anything", "": "anything", "[::1]:80": "anything",
	} {
		if got := get(t, table, host, "/"); got != want {
			t.Errorf("host %q: %s, want %s", host, got, want)
		}
	}
}

func TestPaths(t *testing.T) {
	table := newTable(t)
	table.Update(map[string]*document.Host{"h": hostOf(
		route("prefix", "/foo", "foo"), route("prefix", "/foo/bar/", "foobar"), route("exact", "/foo", "exact"),
		route("prefix", "/a{env.HOME}", "literal"), route("exact", "/glob*", "glob"),
	)})
	for path, want := range map[string]string{
		"/foo": "exact", "/foo/": "foo", "/foo/x": "foo", "/foobar": "none", "/Foo": "none", "/foo/bar": "foobar",
		"/foo/bar/x": "foobar", "/foo/barx": "foo", "/": "none", "": "none", "/a{env.HOME}": "literal",
		"/a{env.HOME}/b": "literal", "/glob*": "glob", "/globe": "none",
		"//foo": "exact", "/./foo": "exact", "/x/../foo/y": "foo", "/foo/../secret": "none",
		"foo/x": "foo", "*": "none", "../foo": "exact",
	} {
		if got := get(t, table, "h", path); got != want {
			t.Errorf("path %q: %s, want %s", path, got, want)
		}
	}
}

func TestRegexPaths(t *testing.T) {
	table := newTable(t)
	table.Update(map[string]*document.Host{"h": hostOf(
		route("regex", "/foo/[a-z]{3}", "three"), route("regex", "/foo", "foo"), route("regex", "/(", "bad"),
	)})
	refused := table.Refused()
	if len(refused) != 1 || refused[0].Path != "/(" {
		t.Fatalf("refused %+v", refused)
	}
	for path, want := range map[string]string{
		"/foo/abc": "three", "/FOO/ABC/d": "three", "/foo/1": "foo", "/foobar": "foo", "/x/foo": "none",
	} {
		if got := get(t, table, "h", path); got != want {
			t.Errorf("path %q: %s, want %s", path, got, want)
		}
	}
}

func TestRejectedChainAffectsOnlyItsPath(t *testing.T) {
	table := newTable(t)
	bad := &document.Route{Type: "prefix", Path: "/bad", Origin: "Ingress/shop/web", Destination: document.Destination{
		Chain: json.RawMessage(`[{"handle":[{"handler":"no_such"}]}]`),
	}}
	table.Update(map[string]*document.Host{"h": hostOf(route("prefix", "/", "good"), bad)})
	refused := table.Refused()
	if len(refused) != 1 || refused[0].Origin != "Ingress/shop/web" ||
		!strings.Contains(refused[0].Err.Error(), "no_such") {
		t.Fatalf("refused %+v", refused)
	}
	if got := get(t, table, "h", "/x"); got != "good" {
		t.Errorf("the other path answers %q", got)
	}
	// The chain of the shorter path may lack the access rules of this path.
	if got := status(t, table, "h", "/bad/x"); got != http.StatusServiceUnavailable {
		t.Errorf("the path answers %d", got)
	}
}

func TestEqualChainsAreProvisionedOnce(t *testing.T) {
	table := newTable(t)
	changes := map[string]*document.Host{}
	for i := range 100 {
		changes[fmt.Sprintf("h%d", i)] = hostOf(route("prefix", "/", "same"))
	}
	table.Update(changes)
	if table.Hosts() != 100 || table.Chains() != 1 {
		t.Errorf("%d hosts share %d chains", table.Hosts(), table.Chains())
	}
	for name := range changes {
		changes[name] = nil
	}
	table.Update(changes)
	if table.Hosts() != 0 || table.Chains() != 0 {
		t.Errorf("after their removal there are %d hosts and %d chains", table.Hosts(), table.Chains())
	}
}

func TestNotReadyUntilComplete(t *testing.T) {
	table := live.NewTable(endpoints.NewTable(), trust.NewStore())
	if got := get(t, table, "h", "/"); got != "not ready" {
		t.Errorf("an incomplete table answers %q", got)
	}
}

// TestChangesUnderLoad runs readers and a writer concurrently, for the race detector.
func TestChangesUnderLoad(t *testing.T) {
	table := newTable(t)
	one, two := hostOf(route("prefix", "/", "one")), hostOf(route("prefix", "/", "two"))
	table.Update(map[string]*document.Host{"h": one})
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := get(t, table, "h", "/"); got != "one" && got != "two" {
					t.Errorf("a request got %q", got)
					return
				}
			}
		})
	}
	for range 200 {
		table.Update(map[string]*document.Host{"h": two})
		table.Update(map[string]*document.Host{"h": one, "other": two})
		table.Update(map[string]*document.Host{"other": nil})
	}
	close(stop)
	readers.Wait()
}

func BenchmarkServe(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("hosts=%d", n), func(b *testing.B) {
			table := newTable(b)
			changes := map[string]*document.Host{}
			for i := range n {
				changes[fmt.Sprintf("host-%d.example.com", i)] = hostOf(
					&document.Route{Type: "prefix", Path: "/",
						Destination: document.Destination{Chain: json.RawMessage(`[]`)}})
			}
			table.Update(changes)
			r := httptest.NewRequest(http.MethodGet, "http://x/some/path", nil)
			r.Host = fmt.Sprintf("host-%d.example.com", n-1)
			w := httptest.NewRecorder()
			r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
			b.ReportAllocs()
			for b.Loop() {
				_, _ = serve(table, w, r)
			}
		})
	}
}

// BenchmarkUpdate changes all hosts of a table at once, and a single host. The cost per host must not grow with the
// number of hosts.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		all := map[string]*document.Host{}
		for i := range n {
			all[fmt.Sprintf("host-%d.example.com", i)] = hostOf(route("prefix", "/", "same"))
		}
		b.Run(fmt.Sprintf("all=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				newTable(b).Update(all)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/host")
		})
		b.Run(fmt.Sprintf("one/of=%d", n), func(b *testing.B) {
			table := newTable(b)
			table.Update(all)
			one := map[string]*document.Host{"host-7.example.com": all["host-7.example.com"]}
			b.ReportAllocs()
			for b.Loop() {
				table.Update(one)
			}
		})
	}
}
