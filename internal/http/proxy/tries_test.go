package proxy_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestTries(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		first  func(t *testing.T) *endpoint
		want   string
	}{
		"GET, refused":   {http.MethodGet, refusing, "200 ok"},
		"POST, refused":  {http.MethodPost, refusing, "200 ok"},
		"GET, no answer": {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, hangUp) }, "200 ok"},
		"PUT, no answer": {http.MethodPut, func(t *testing.T) *endpoint { return serve(t, hangUp) }, "200 ok"},
		"POST, no answer": {http.MethodPost,
			func(t *testing.T) *endpoint { return serve(t, hangUp) }, "error 502"},
		"GET, half a head": {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, half) }, "200 ok"},
		"PATCH, half a head": {http.MethodPatch,
			func(t *testing.T) *endpoint { return serve(t, half) }, "error 502"},
		"GET, not HTTP": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, respondWith("SSH-2.0-x\r\n\r\n")) }, "error 502"},
		"GET, other protocol": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, respondWith(switching)) }, "error 502"},
		"GET, endless head": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, endless) }, "error 502"},
		"GET, no status": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, respondWith(noStatus)) }, "error 502"},
		"GET, two lengths": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, respondWith(twoLengths)) }, "error 502"},
		"GET, error of its own": {http.MethodGet,
			func(t *testing.T) *endpoint { return serve(t, respondWith(serverError)) }, "500 x"},
	} {
		t.Run(name, func(t *testing.T) {
			good := serve(t, respondWith(fine))
			if got := forward(pool(t), request(t, test.method, "body"), of(test.first(t), good)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

const (
	switching   = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
	noStatus    = "HTTP/1.1 099 Nothing\r\nContent-Length: 0\r\n\r\n"
	twoLengths  = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"
	serverError = "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx"
)

func half(conn net.Conn, _ *http.Request) bool {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
	return false
}

func endless(conn net.Conn, _ *http.Request) bool {
	_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for err == nil {
		_, err = io.WriteString(conn, "X-Filler: "+strings.Repeat("x", 1000)+"\r\n")
	}
	return false
}

func TestThreeTriesAtMost(t *testing.T) {
	bad := serve(t, hangUp)
	if got := forward(pool(t), request(t, http.MethodGet, ""), of(bad)); got != "error 502" {
		t.Error(got)
	}
	if n := bad.requests.Load(); n != 3 {
		t.Errorf("%d tries", n)
	}
}

func TestNoEndpoint(t *testing.T) {
	if got := forward(pool(t), request(t, http.MethodGet, ""), of()); got != "error 503" {
		t.Error(got)
	}
}
