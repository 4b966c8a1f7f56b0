package featuretests

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// The bodies of the endpoint in TestSubstitution, and what clients get.
var (
	oldPage = "<html><HEAD></HEAD><body>" + strings.Repeat("the old shop ", 20_000) + "ol"
	newPage = "<html><HEAD><link></head><body>" + strings.Repeat("the new shop ", 20_000) + "ol"
	// shortPage is so short that clients get the Content-Length of the changed page, which is shortLength.
	shortPage   = "<html><HEAD></HEAD>" + strings.Repeat("the old shop ", 800)
	shortLength = fmt.Sprint(len(shortPage) + len("<link>"))
	replaced    = ir.Substitution{
		Pairs:  []ir.Replacement{{From: "</head>", To: "<link></head>"}, {From: "Old ", To: "new "}},
		Repeat: true, Types: []string{"text/event-stream"},
	}
)

// pages is an endpoint that sends oldPage in several ways, which are its paths.
func pages(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("ETag", `"1"`)
	switch r.URL.Path {
	case "/length":
		w.Header().Set("Content-Length", fmt.Sprint(len(oldPage)))
		fmt.Fprint(w, oldPage)
	case "/pieces":
		for i := 0; i < len(oldPage); i += 4097 {
			fmt.Fprint(w, oldPage[i:min(i+4097, len(oldPage))])
			_ = http.NewResponseController(w).Flush()
		}
	case "/trailer":
		w.Header().Set("Trailer", "X-Behind")
		fmt.Fprint(w, oldPage)
		w.Header().Set("X-Behind", "yes")
	case "/encoded":
		w.Header().Set("Content-Encoding", "unknown")
		fmt.Fprint(w, oldPage)
	case "/events":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "old old ol")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case "/short":
		w.Header().Set("Content-Length", fmt.Sprint(len(shortPage)))
		fmt.Fprint(w, shortPage)
	case "/cut", "/short-cut":
		page := map[string]string{"/cut": oldPage, "/short-cut": shortPage}[r.URL.Path]
		w.Header().Set("Content-Length", fmt.Sprint(len(page)))
		fmt.Fprint(w, page[:len(page)/2])
		panic(http.ErrAbortHandler)
	}
}

// TestSubstitution checks that the bodies of responses are changed in each version of HTTP, also if Caddy handlers are
// in front of the filter or behind it, if responses are buffered, and if they are compressed.
func TestSubstitution(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(pages))
	defer server.Close()
	backend := &ir.Backend{ID: "shop/web/80"}
	config := &ir.Config{Backends: []*ir.Backend{backend}, Global: &ir.Global{}}
	config.Global.Compression.Gzip = ir.Coding{On: true}
	handlers := ir.HandlerChain{Name: "own"}
	for host, filters := range map[string][]ir.Filter{
		"a.example": {replaced}, "after.example": {handlers, replaced}, "before.example": {replaced, handlers},
		"buffered.example": {replaced},
	} {
		route := &ir.Route{Match: ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}}, Filters: filters,
			Backends: ir.To(backend)}
		route.Proxy.BufferResponse = host == "buffered.example"
		config.VirtualHosts = append(config.VirtualHosts, &ir.VirtualHost{Host: host, Routes: []*ir.Route{route}})
	}
	in := newIngress(t)
	in.serveModel(server.Listener.Addr().String(), config, "chain own {\nheader X-Own yes\n}")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, host := range config.VirtualHosts {
			in.substitutes(t, host.Host)
		}
		if trailer := in.compressed("/trailer", "gzip", newPage).Get("X-Behind"); trailer != "yes" {
			t.Errorf("the trailer of the compressed page is %q", trailer)
		}
		in.compressed("/length", "gzip", newPage)
		for _, path := range []string{"/cut", "/short-cut"} {
			if n, err := in.readAll(path); err == nil {
				t.Errorf("%s: %d bytes of a page that breaks off seem to be the whole page", path, n)
			}
		}
		if got := in.sendBy(in.client, in.origin("a.example")+"/short", http.MethodGet, nil,
			"Accept-Encoding: identity"); got.header.Get("Content-Length") != shortLength ||
			fmt.Sprint(len(got.body)) != shortLength {
			t.Errorf("%d bytes of the short page, Content-Length %q, want %s", len(got.body),
				got.header.Get("Content-Length"), shortLength)
		}
		response, err := in.accepting("/events", "identity")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		first := make([]byte, len("new new "))
		if _, err := io.ReadFull(response.Body, first); string(first) != "new new " {
			t.Errorf("the first events are %q, %v", first, err)
		}
	})
}

// substitutes checks the responses of a host.
func (in *ingress) substitutes(t *testing.T, host string) {
	t.Helper()
	for _, path := range []string{"/length", "/pieces", "/trailer", "/encoded"} {
		got := in.sendBy(in.client, in.origin(host)+path, http.MethodGet, nil, "Accept-Encoding: identity")
		want, tag := newPage, ""
		if path == "/encoded" {
			want, tag = oldPage, `"1"`
		}
		if got.body != want || got.header.Get("ETag") != tag {
			t.Errorf("%s%s: %d bytes, ETag %q, want %d and %q", host, path, len(got.body), got.header.Get("ETag"),
				len(want), tag)
		}
	}
}
