package proxy_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/proxy"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestRequestWithoutHost checks that HTTP/1.0 requests need no host and HTTP/1.1 requests do.
func TestRequestWithoutHost(t *testing.T) {
	hosts := make(chan string, 1)
	e := serve(t, func(conn net.Conn, r *http.Request) bool {
		hosts <- r.Host
		return respondWith(fine)(conn, r)
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

func TestClientGoesAway(t *testing.T) {
	w := newWorker()
	w.isLeft(t, pool(t), request(t, http.MethodGet, ""), serve(t, w.work))
}

// newRequest returns a request as a server reads it.
func newRequest(fields ...message.Field) *message.Request {
	return &message.Request{
		Method: http.MethodGet, Host: "shop.example", Target: "/a", Path: "/a", EscapedPath: "/a", Query: "b=c",
		Major: 1, Minor: 1,
		Fields: fields, Conn: &message.Conn{RemoteIP: "192.0.2.1", LocalPort: "80"},
	}
}

// sends forwards a request unchanged.
func sends(t *testing.T, r *message.Request, s *proxy.Settings, e *endpoint) (*httptest.ResponseRecorder, error) {
	t.Helper()
	w := httptest.NewRecorder()
	x := &exchange.Exchange{
		Request: r, Route: &exchange.Route{Path: "/"}, Backend: of(e), Clients: realip.New(ir.Clients{}),
		Global: &ir.Global{},
		Writer: message.NewHTTPWriter(w, httptest.NewRequest(r.Method, "/", nil)),
	}
	err := pool(t).Forward(x, s, nil)
	x.Conclude(err)
	return w, err
}

// TestNothingEndsALine checks that neither a header field nor a path can insert a line into a request.
func TestNothingEndsALine(t *testing.T) {
	e := serve(t, respondWith(fine))
	for name, spoil := range map[string]func(*message.Request){
		"field value": func(r *message.Request) { r.Fields.Add(message.Field{Name: "X-A", Value: "a\r\nX-B: b"}) },
		"field name":  func(r *message.Request) { r.Fields.Add(message.Field{Name: "X-A: b\r\nX-B", Value: "b"}) },
		"host":        func(r *message.Request) { r.Host = "a\r\nX-B: b" },
		"method":      func(r *message.Request) { r.Method = "GET / HTTP/1.1\r\nX-B: b\r\n\r\nGET" },
		"query":       func(r *message.Request) { r.Query = "a HTTP/1.1\r\nX-B: b\r\n\r\n" },
		"path":        func(r *message.Request) { r.EscapedPath = "/a b" },
		"what is told": func(r *message.Request) {
			r.Conn = &message.Conn{RemoteIP: "192.0.2.1\r\nX-B: b", LocalPort: "80"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest()
			spoil(r)
			if got := outcome(sends(t, r, settings(), e)); got != "error 400" {
				t.Error(got)
			}
		})
	}
	if n := e.requests.Load(); n != 0 {
		t.Errorf("%d requests have reached the endpoint", n)
	}
}

// TestRequestHeadAtTheEndpoint checks the request head byte by byte: the client's fields in their order and spelling,
// without the fields that end at the proxy or that the proxy sets.
func TestRequestHeadAtTheEndpoint(t *testing.T) {
	heads := make(chan string, 1)
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		var all []byte
		for part := make([]byte, 1000); !strings.Contains(string(all), "\r\n\r\n"); {
			n, err := conn.Read(part)
			if all = append(all, part[:n]...); err != nil {
				return
			}
		}
		heads <- string(all)
		_, _ = io.WriteString(conn, strings.Replace(fine, "\r\n", "\r\nConnection: close\r\n", 1))
	})
	const told = "X-Request-ID: id\r\nX-Real-IP: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: " +
		"shop.example\r\n" +
		"X-Forwarded-Port: 80\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Scheme: http\r\nX-Scheme: http\r\n"
	const begin, loop, end = "GET /a?b=c HTTP/1.1\r\nHost: shop.example\r\n", "CDN-Loop: k8singress\r\n", "\r\n"
	for name, c := range map[string]struct {
		fields   string
		settings ir.Forwarding
		want     string
	}{
		"nothing": {want: begin + told + loop + end},
		"his order": {
			fields: "b: 1|A: 2|cookie: a=b|A: 3|authorization: x",
			want:   begin + "b: 1\r\nA: 2\r\ncookie: a=b\r\nA: 3\r\nauthorization: x\r\n" + told + loop + end,
		},
		"the framing": {
			fields: "Content-Length: 0|Transfer-Encoding: chunked|Trailer: a|Expect: 100-continue|Connection: " +
				"keep-alive|Keep-Alive: 5",
			want: begin + told + loop + end,
		},
		"proxies": {fields: "Proxy-Connection: x|Proxy-Authorization: x|Proxy-Authenticate: x|TE: gzip",
			want: begin + told + loop + end},
		"h2c": {fields: "Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: AAMA",
			want: begin + told + loop + end},
		"websocket": {
			fields: "Connection: keep-alive, Upgrade|Upgrade: WebSocket|Sec-WebSocket-Key: x",
			want: begin + "Sec-WebSocket-Key: x\r\n" + told + loop +
				"Connection: Upgrade\r\nUpgrade: WebSocket\r\n" + end,
		},
		"trailers": {fields: "te: trailers", want: begin + told + loop + end},
		"close": {settings: ir.Forwarding{Connection: "close"},
			want: begin + told + loop + "Connection: close\r\n" + end},
		"forged": {
			fields: "x-forwarded-for: 6.6.6.6|X-Forwarded-Host: evil|X-Real-IP: 6.6.6.6|Forwarded: " +
				"for=6.6.6.6|X-Original-URI: /|Proxy: x|X-Rewrite-URL: /",
			want: begin + told + "X-Original-Forwarded-For: 6.6.6.6\r\nX-Original-Forwarded-Host: evil\r\n" + loop +
				end,
		},
		"connection names": {
			fields: "Connection: X-Forwarded-For, Authorization, X-Set-By-Filter|Authorization: x|X-Set-By-Filter: y",
			want:   begin + "Authorization: x\r\nX-Set-By-Filter: y\r\n" + told + loop + end,
		},
		"proxies before": {fields: "via: 1.0 a|Via: 1.1 b",
			want: begin + told + "Via: 1.0 a, 1.1 b\r\n" + loop + end},
		"CDNs before": {fields: "cdn-loop: a; b=c|CDN-Loop: k8singress, d",
			want: begin + told + "CDN-Loop: a; b=c, k8singress, d, k8singress\r\n" + end},
		"his prefix": {fields: "X-Forwarded-Prefix: /p",
			want: begin + "X-Forwarded-Prefix: /p\r\n" + told + loop + end},
		"our prefix": {
			fields: "X-Forwarded-Prefix: /p", settings: ir.Forwarding{Prefix: "/q"},
			want: begin + told + "X-Forwarded-Prefix: /q\r\n" + loop + end,
		},
		"a host": {
			fields: "x: www", settings: ir.Forwarding{Host: "$http_x.example"},
			want: "GET /a?b=c HTTP/1.1\r\nHost: www.example\r\nx: www\r\n" + told + loop + end,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(message.XRequestID.Field("id"))
			for _, line := range strings.Split(c.fields, "|") {
				if name, value, ok := strings.Cut(line, ": "); ok {
					r.Fields.Add(message.NewField(name, value))
				}
			}
			if got := outcome(sends(t, r, settingsOf(ir.Proxy{Forwarding: c.settings}),
				&endpoint{Listener: listener})); got != "200 ok" {
				t.Error(got)
			}
			if got := fixture.Receive(t, "the head", heads); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestLoops checks when a request is detected as looping.
func TestLoops(t *testing.T) {
	const eight = "k8singress, k8singress;a=b, k8singress ;a, a,k8singress,,k8singress, k8singress,k8singress, " +
		"k8singress"
	for value, want := range map[string]bool{
		"": false, "k8singress": false, strings.Repeat("k8singress, ", 7): false, eight: true,
		strings.Repeat("k8singress, ", 8): true, strings.Repeat("my-k8singress.example, ", 8): false,
		strings.Repeat("other; by=k8singress, ", 8): false,
	} {
		via := message.Via.Field(strings.Repeat("1.1 k8singress, ", 8))
		if got := proxy.Loops(newRequest(message.CDNLoop.Field(value), message.CDNLoop.Field("x"), via)); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}
