package k8singress_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
)

// rewriter serves requests through a table with one regular expression and one target.
type rewriter struct {
	testing.TB
	table *live.Table
}

func newRewriter(t testing.TB) *rewriter {
	t.Helper()
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx.Context = context.WithoutCancel(ctx.Context)
	table := live.NewTable(endpoints.NewTable(), trust.NewStore())
	if err := table.Adopt(ctx); err != nil {
		t.Fatal(err)
	}
	table.MarkReady()
	t.Cleanup(table.Close)
	return &rewriter{t, table}
}

// use rewrites requests whose paths match pattern to target.
func (w *rewriter) use(pattern, target string) {
	w.Helper()
	chain, err := json.Marshal([]map[string]any{{"handle": []map[string]any{{"handler": "k8singress_rewrite",
		"target": target}}}})
	if err != nil {
		w.Fatal(err)
	}
	w.chain(pattern, chain)
}

// chain sends requests whose paths match pattern through a chain.
func (w *rewriter) chain(pattern string, chain json.RawMessage) {
	w.Helper()
	w.table.Update(map[string]*document.Host{"h": {Routes: []*document.Route{{
		Type: "regex", Path: pattern, Destination: document.Destination{Chain: chain},
	}}}})
	for _, r := range w.table.Refused() {
		w.Fatal(r.Err)
	}
}

// rewrite returns the request line that a backend would see. ok is false if the request gets 400.
func (w *rewriter) rewrite(r *http.Request) (line string, ok bool) {
	w.Helper()
	r.Host = "h"
	recorder := httptest.NewRecorder()
	r = caddyhttp.PrepareRequest(r, w.suspicious(), recorder, &caddyhttp.Server{})
	x := &exchange.Exchange{Request: new(message.Request), Writer: message.NewHTTPWriter(recorder, r),
		Clients: w.table.Clients()}
	x.FromHTTP(r)
	outcome, err := w.table.Serve(x)
	if outcome != live.Served || err == nil {
		w.Fatalf("%q: outcome %v, error %v", r.URL.Path, outcome, err)
	}
	// No handler follows the rewrite, so the status is 404.
	switch status := exchange.StatusOf(err); status {
	case http.StatusBadRequest:
		return "", false
	case http.StatusNotFound:
		return x.OutTarget(), true
	default:
		w.Fatalf("%q: %v", r.URL.Path, err)
		return "", false
	}
}

// suspicious returns a replacer that fails the test if a placeholder is requested.
func (w *rewriter) suspicious() *caddy.Replacer {
	replacer := caddy.NewEmptyReplacer()
	replacer.Map(func(key string) (any, bool) {
		w.Errorf("placeholder %q was looked up", key)
		return "expanded", true
	})
	return replacer
}

func request(t testing.TB, uri string) *http.Request {
	t.Helper()
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Request{Method: http.MethodGet, URL: u, RequestURI: uri, Header: http.Header{}}
}

func TestRewrite(t *testing.T) {
	const refused = "400"
	t.Setenv("K8SINGRESS_SECRET", "expanded")
	cases := map[string]struct{ pattern, target, request, want string }{
		"whole path":              {"/old", "/new", "/old/and/more", "/new"},
		"one group":               {"/api(/|$)(.*)", "/$2", "/api/users/1", "/users/1"},
		"empty group":             {"/api(/|$)(.*)", "/$2", "/api", "/"},
		"group that took no part": {"/(a)|/(b)", "/x$1$2y", "/b", "/xby"},
		"all nine": {"/(.)(.)(.)(.)(.)(.)(.)(.)(.)", "/$9$8$7$6$5$4$3$2$1", "/abcdefghi",
			"/ihgfedcba"},
		"the tenth is the first":    {"/(.)(.)(.)(.)(.)(.)(.)(.)(.)(.)", "/$10", "/abcdefghij", "/a0"},
		"no such group":             {"/(a)", "/x$2y", "/a", "/xy"},
		"dollar alone":              {"/(a)", "/$/$0/$$1/$x/$", "/a", "/$/$0/$a/$x/$"},
		"group holds a dollar":      {"/(.*)", "/x/$1", "/$1$2", "/x/$1$2"},
		"case of the path":          {"/API/(.*)", "/$1", "/api/Users", "/Users"},
		"no slash in front":         {"/(.*)", "$1", "/a", "/a"},
		"two slashes":               {"/a(.*)", "/$1", "/a/b", "//b"},
		"slashes are merged before": {"/a/(.*)", "/$1", "//a///b", "/b"},
		"query stays":               {"/(.*)", "/x/$1", "/a?b=c&d=%20{e}", "/x/a?b=c&d=%20{e}"},
		"own query before":          {"/(.*)", "/x?path=$1", "/a/b?c=d", "/x?path=a/b&c=d"},
		"own query alone":           {"/(.*)", "/x?path=$1", "/a", "/x?path=a"},
		"group cannot add to query": {"/(.*)", "/x?path=$1", "/a%26admin=1%23%3F", "/x?path=a%26admin=1%23%3F"},
		"empty own query":           {"/a(.*)", "/x?$1", "/a?b=c", "/x?b=c"},
		"client's query dropped":    {"/(.*)", "/x/$1?", "/a?b=c", "/x/a"},
		"client's mark dropped":     {"/(.*)", "/x/$1?", "/a?", "/x/a"},
		"replaced query":            {"/(.*)", "/x?y=$1?", "/a?b=c", "/x?y=a"},
		"replaced by nothing":       {"/a(.*)", "/x?$1?", "/a?b=c", "/x"},
		"group ends with mark":      {"/(.*)", "/x?y=$1", "/a%3F?b=c", "/x?y=a%3F&b=c"},
		"mark in a group of a path": {"/(.*)", "/x/$1", "/a%3Fb=c", "/x/a%3Fb=c"},
		"escaped slash":             {"/(.*)", "/x/$1", "/a%2Fb", "/x/a/b"},
		"escaped percent":           {"/(.*)", "/x/$1", "/a%252Fb", "/x/a%252Fb"},
		"escaped bytes":             {"/(.*)", "/x/$1", "/%C3%A4%20%22%3C%FF", "/x/%C3%A4%20%22%3C%FF"},
		"target is text, not URL":   {"/(.*)", "/a%20b/$1", "/c", "/a%2520b/c"},
		"beyond ASCII":              {"/(.*)", "/ä", "/a", "/%C3%A4"},
		"placeholders of the target": {"/(.*)", "/{env.K8SINGRESS_SECRET}/{http.request.host}/$1?{path}", "/a",
			"/%7Benv.K8SINGRESS_SECRET%7D/%7Bhttp.request.host%7D/a?{path}"},
		"placeholders of the client": {"/(.*)", "/x/$1?y=$1", "/%7Benv.K8SINGRESS_SECRET%7D",
			"/x/%7Benv.K8SINGRESS_SECRET%7D?y=%7Benv.K8SINGRESS_SECRET%7D"},
		"placeholder out of two": {"/(.*)/(.*)", "/$1.$2", "/%7Benv/K8SINGRESS_SECRET%7D",
			"/%7Benv.K8SINGRESS_SECRET%7D"},
		"templates":                  {"/(.*)", "/{{env `HOME`}}/$1", "/a", "/%7B%7Benv%20%60HOME%60%7D%7D/a"},
		"dots that are resolved":     {"/a/(.*)", "/x/$1", "/a/b/../c/./d", "/x/c/d"},
		"dots that leave the folder": {"/(.*)", "/x/$1", "/a/../../b", "/x/b"},
		"escaped dots":               {"/a/(.*)", "/x/$1", "/a/%2E%2e/a/b", "/x/b"},
		"dots twice escaped":         {"/a/(.*)", "/x/$1", "/a/%252e%252e/b", refused},
		"dots with a parameter":      {"/api(.*)", "/$1", "/api..;/admin", refused},
		"dots and a backslash":       {"/api(.*)", "/x$1", "/api/..%5cadmin", refused},
		"a parameter":                {"/api(.*)", "/$1", "/api/a;v=1/b", "//a;v=1/b"},
		"dots made of groups":        {"/a/(.*)", "/x/.$1", "/a/./b", "/x/.b"},
		"parent made of groups":      {"/a(.*)b(.*)", "/x/$1$2/y", "/a.b.", refused},
		"folder made of groups":      {"/a(.*)", "/x/$1/y", "/a.", refused},
		"folder and an empty group":  {"/a(.*)", "/x/.$1", "/a", refused},
		"dots of the target":         {"/(.*)", "/x/../$1", "/a", refused},
		"dots in the query":          {"/(.*)", "/x?y=../$1", "/a", "/x?y=../a"},
		"dots inside a name":         {"/(.*)", "/x/$1..", "/..a", "/x/..a.."},
		"absolute URL":               {"/(.*)", "/x/$1", "http://h/a?b", "/x/a?b"},
	}
	w := newRewriter(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := &rewriter{t, w.table}
			w.use(c.pattern, c.target)
			got, ok := w.rewrite(request(t, c.request))
			if !ok {
				got = refused
			}
			if got != c.want {
				t.Errorf("%s becomes %s, want %s", c.request, got, c.want)
			}
		})
	}
}

func TestRewriteOutsideOfAnIngress(t *testing.T) {
	recorder := httptest.NewRecorder()
	r := caddyhttp.PrepareRequest(request(t, "/a"), caddy.NewReplacer(), recorder, &caddyhttp.Server{})
	ctx, err := caddy.ProvisionContext(&caddy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	module, err := ctx.LoadModuleByID("http.handlers.k8singress_rewrite", json.RawMessage(`{"target":"/x"}`))
	if err != nil {
		t.Fatal(err)
	}
	next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
		t.Error("the request was handed on")
		return nil
	})
	if err := module.(caddyhttp.MiddlewareHandler).ServeHTTP(recorder, r, next); err == nil || r.URL.Path != "/a" {
		t.Errorf("error %v, path %s", err, r.URL.Path)
	}
}

var groupNumber = regexp.MustCompile(`\$[1-9]`)

// FuzzRewrite checks that placeholders in targets, paths and queries are never expanded, that the new path is exactly
// the target with its groups replaced, and that the backend sees exactly this path.
func FuzzRewrite(f *testing.F) {
	f.Setenv("K8SINGRESS_SECRET", "expanded")
	for _, target := range []string{
		"/$1", "/$2?$1", "$1$1?", "/{env.K8SINGRESS_SECRET}/$1", "/x/.$1?{http.request.uri}", "/$", "?$1?",
		"/%2e/$9", "//$1",
	} {
		for _, path := range []string{"/a/b", "/%7Benv.K8SINGRESS_SECRET%7D", "/./..//a", "/%2e%2e/$1",
			"/%FF%00%0a%3f%23", "*"} {
			f.Add(target, path, "q={env.K8SINGRESS_SECRET}&%zz")
		}
	}
	w := newRewriter(f)
	f.Fuzz(func(t *testing.T, target, path, query string) {
		u, err := url.ParseRequestURI(path)
		switch {
		case err != nil, u.Opaque != "", !utf8.ValidString(target), strings.ContainsFunc(target, notPlain),
			strings.ContainsFunc(query, notPlain):
			// No server forwards such a request, and no Ingress has such a target.
			return
		}
		u.RawQuery = query
		w := &rewriter{t, w.table}
		w.use("/(.?)(.*)", target)
		clean := message.CleanPath(u.Path)
		if !strings.HasPrefix(clean, "/") {
			return
		}
		got, ok := w.rewrite(&http.Request{Method: http.MethodGet, URL: u, Header: http.Header{}})
		groups := regexp.MustCompile("^/(.?)(.*)").FindStringSubmatch(clean)
		template, _, _ := strings.Cut(target, "?")
		want := groupNumber.ReplaceAllStringFunc(template, func(s string) string {
			if n := int(s[1] - '0'); n < len(groups) {
				return groups[n]
			}
			return ""
		})
		want = "/" + strings.TrimPrefix(want, "/")
		if dots := message.HasDotSegment(want); ok == dots {
			t.Fatalf("%q to %q: accepted is %v", clean, want, ok)
		}
		if !ok {
			return
		}
		seen, err := url.ParseRequestURI(got)
		if err != nil || seen.Path != want {
			t.Fatalf("%q becomes %q, want the path %q; %v", clean, got, want, err)
		}
	})
}

func notPlain(r rune) bool { return r <= ' ' || r == 0x7f }
