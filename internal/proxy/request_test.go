package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
)

// TestRequestWithoutHost: HTTP/1.0 needs none, HTTP/1.1 does.
func TestRequestWithoutHost(t *testing.T) {
	hosts := make(chan string, 1)
	e := serve(t, func(conn net.Conn, r *http.Request) bool {
		hosts <- r.Host
		return says(fine)(conn, r)
	})
	r := request(t, http.MethodGet, "")
	r.Host = ""
	if got := forward(pool(t), r, of(e)); got != "200 ok" {
		t.Error(got)
	}
	if host := fixture.Receive(t, "the host that the endpoint got", hosts); host != e.Addr().String() {
		t.Errorf("host %q", host)
	}
}

func TestAClientThatGoesAway(t *testing.T) {
	w := newWorker()
	w.isLeft(t, pool(t), request(t, http.MethodGet, ""), serve(t, w.work))
}

// TestNothingEndsALine holds that neither a header nor a path can put a line of its own into a request.
func TestNothingEndsALine(t *testing.T) {
	e := serve(t, says(fine))
	for name, spoil := range map[string]func(*http.Request){
		"header value": func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
		"header name":  func(r *http.Request) { r.Header["X-A: b\r\nX-B"] = []string{"b"} },
		"host":         func(r *http.Request) { r.Host = "a\r\nX-B: b" },
		"method":       func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX-B: b\r\n\r\nGET" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX-B: b\r\n\r\n" },
		"opaque":       func(r *http.Request) { r.URL.Opaque = "/a b" },
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, http.MethodGet, "")
			spoil(r)
			if got := forward(pool(t), r, of(e)); got != "error 400" {
				t.Error(got)
			}
		})
	}
	if n := e.requests.Load(); n != 0 {
		t.Errorf("%d requests have reached the endpoint", n)
	}
}

func TestOrdinary(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request, *proxy.Settings)
		want   bool
	}{
		"plain":      {func(*http.Request, *proxy.Settings) {}, true},
		"keep-alive": {func(r *http.Request, _ *proxy.Settings) { r.Header.Set("Connection", "Keep-Alive") }, true},
		"websocket": {func(r *http.Request, _ *proxy.Settings) {
			r.Header = http.Header{"Upgrade": {"WebSocket"}, "Connection": {"keep-alive, Upgrade"}}
		}, false},
		"h2c": {func(r *http.Request, _ *proxy.Settings) {
			r.Header = http.Header{"Upgrade": {"h2c"}, "Connection": {"Upgrade"}}
		}, true},
		"hop by hop":       {func(r *http.Request, _ *proxy.Settings) { r.Header.Set("Connection", "X-Secret") }, true},
		"unknown length":   {func(r *http.Request, _ *proxy.Settings) { r.ContentLength = -1 }, true},
		"streamed":         {func(_ *http.Request, s *proxy.Settings) { s.StreamRequest = true }, false},
		"large body":       {func(r *http.Request, _ *proxy.Settings) { setBody(r, 100_000) }, false},
		"trailers to come": {func(r *http.Request, _ *proxy.Settings) { r.Trailer = http.Header{"X-Sum": nil} }, false},
		"gRPC":             {func(_ *http.Request, s *proxy.Settings) { s.Protocol = ir.GRPC }, false},
		"as the client":    {func(_ *http.Request, s *proxy.Settings) { s.Protocol = ir.AutoHTTP }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := request(t, http.MethodGet, "body"), settings()
			test.change(r, s)
			x := proxy.NewExchange(s, of())
			defer x.Close()
			if err := x.ReadBody(r); err != nil {
				t.Fatal(err)
			}
			if got := x.Ordinary(r); got != test.want {
				t.Errorf("ordinary is %v", got)
			}
		})
	}
}

func setBody(r *http.Request, size int) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), int64(size)
}
