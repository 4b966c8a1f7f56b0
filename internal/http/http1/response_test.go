package http1_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

func parseAnswer(method, text string) (http1.ResponseHead, *message.Response, string, error) {
	var h http1.ResponseHead
	a := new(message.Response)
	s := http1.Scanner{Response: true}
	head, end, err := s.Find([]byte(text))
	if err != nil {
		return h, a, "", err
	}
	if head == nil {
		return h, a, "", errMore
	}
	return h, a, text[end:], h.Parse(head, method, a)
}

func shownAnswer(h http1.ResponseHead, a *message.Response) string {
	var b strings.Builder
	fmt.Fprint(&b, a.Status)
	for _, f := range a.Fields {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	fmt.Fprintf(&b, " body=%d:%d", h.Framing, a.Length)
	for _, name := range a.Trailers {
		b.WriteString(" trailer=" + name)
	}
	if h.KeepAlive {
		b.WriteString(" keep")
	}
	return b.String()
}

func TestResponsesAccepted(t *testing.T) {
	for _, c := range []struct{ name, method, text, want string }{
		{"sized", "GET", crlf("HTTP/1.1 200 OK", "x-A: 1", "Content-Length: 5", "Set-Cookie: a", "set-cookie: b"),
			"200 x-A=1 Set-Cookie=a set-cookie=b body=1:5 keep"},
		{"empty", "GET", crlf("HTTP/1.1 404 Not Found", "Content-Length: 0"), "404 body=0:0 keep"},
		{"chunked", "GET", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: CHUNKED"), "200 body=2:-1 keep"},
		{"trailers", "GET", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: Grpc-Status, host,x y"),
			"200 body=2:-1 trailer=Grpc-Status keep"},
		{"until close", "GET", crlf("HTTP/1.1 200 OK", "A: b"), "200 A=b body=3:-1"},
		{"length twice", "GET", crlf("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 05"),
			"200 body=1:5 keep"},
		{"length and chunks", "GET", crlf("HTTP/1.1 200 OK", "Content-Length: 5", "Transfer-Encoding: chunked"),
			"200 body=2:-1"},
		{"chunks in 1.0", "GET", crlf("HTTP/1.0 200 OK", "Connection: keep-alive", "Transfer-Encoding: chunked"),
			"200 body=2:-1"},
		{"1.0", "GET", crlf("HTTP/1.0 200 OK", "Content-Length: 5"), "200 body=1:5"},
		{"1.0 keeps", "GET", crlf("HTTP/1.0 200 OK", "Content-Length: 5", "Connection: Keep-Alive"),
			"200 body=1:5 keep"},
		{"close", "GET", crlf("HTTP/1.1 200 OK", "Content-Length: 5", "Connection: close"), "200 body=1:5"},
		{"HEAD", "HEAD", crlf("HTTP/1.1 200 OK", "Content-Length: 5"), "200 body=0:5 keep"},
		{"HEAD of chunks", "HEAD", crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), "200 body=0:-1 keep"},
		{"204", "GET", crlf("HTTP/1.1 204 No Content", "Content-Length: 5"), "204 body=0:0 keep"},
		{"304", "GET", crlf("HTTP/1.1 304 Not Modified", "Content-Length: 5", "ETag: a"), "304 ETag=a body=0:5 keep"},
		{"304 without", "GET", crlf("HTTP/1.1 304 Not Modified"), "304 body=0:-1 keep"},
		{"103", "GET", crlf("HTTP/1.1 103 Early Hints", "Link: a"), "103 Link=a body=0:0 keep"},
		{"101", "GET", crlf("HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade",
			"Keep-Alive: x"),
			"101 Upgrade=websocket Connection=Upgrade body=0:0 keep"},
		{"hop by hop", "GET", crlf("HTTP/1.1 200 OK", "Content-Length: 5", "Connection: X-A, keep-alive", "x-a: 1",
			"Keep-Alive: timeout=5",
			"Proxy-Authenticate: x", "TE: x", "Upgrade: h2c", "Proxy-Connection: x", "x-b: 1"),
			"200 x-b=1 body=1:5 keep"},
		{"no reason", "GET", crlf("HTTP/1.1 200", "Content-Length: 5"), "200 body=1:5 keep"},
		{"other status", "GET", crlf("HTTP/1.1 799 \x80", "Content-Length: 5"), "799 body=1:5 keep"},
		{"bare LF", "GET", "HTTP/1.1 200 OK\nA: b\r\nContent-Length: 5\n\n", "200 A=b body=1:5 keep"},
		{"names with underscores", "GET", crlf("HTTP/1.1 200 OK", "X_a: b", "Content-Length: 5"),
			"200 X_a=b body=1:5 keep"},
	} {
		h, a, rest, err := parseAnswer(c.method, c.text+"rest")
		if got := shownAnswer(h, a); err != nil || got != c.want || rest != "rest" {
			t.Errorf("%s: %s, %v, with %q behind it", c.name, got, err, rest)
		}
	}
}

func TestResponsesRejected(t *testing.T) {
	ok := func(lines ...string) string { return crlf(append([]string{"HTTP/1.1 200 OK"}, lines...)...) }
	for _, c := range []struct{ name, text, reason string }{
		{"different lengths", ok("Content-Length: 5", "Content-Length: 6"), "two-content-lengths"},
		{"list of lengths", ok("Content-Length: 5, 5"), "content-length"},
		{"negative length", ok("Content-Length: -1"), "content-length"},
		{"bad length beside chunks", ok("Content-Length: x", "Transfer-Encoding: chunked"), "content-length"},
		{"long length", ok("Content-Length: 9999999999999999999"), "content-length-too-large"},
		{"unknown coding", ok("Transfer-Encoding: gzip, chunked"), "transfer-encoding"},
		{"two codings", ok("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), "two-transfer-encodings"},
		{"folded", ok("A: b", " c"), "folded-line"},
		{"space before colon", ok("Content-Length : 5"), "space-before-colon"},
		{"NUL", ok("A: \x00"), "control-character"},
		{"bare CR", ok("A: b\rSet-Cookie: c"), "control-character"},
		{"no colon", ok("A"), "field-name"},
		{"control in the first line", crlf("HTTP/1.1 200 O\rK"), "status-line"},
		{"HTTP/2", crlf("HTTP/2.0 200 OK"), "status-line"},
		{"HTTP/1.2", crlf("HTTP/1.2 200 OK"), "status-line"},
		{"two digits", crlf("HTTP/1.1 20 OK"), "status-line"},
		{"four digits", crlf("HTTP/1.1 2000 OK"), "status-line"},
		{"status below 100", crlf("HTTP/1.1 099 OK"), "status-line"},
		{"no status", crlf("HTTP/1.1"), "status-line"},
		{"another protocol", "SSH-2.0-x", "status-line"},
		{"an empty line", "\r\nHTTP/1.1 200 OK\r\n\r\n", "empty-lines"},
		{"many fields", ok(strings.Split(strings.Repeat("a: b\n", 1024)+"a: b", "\n")...), "many-fields"},
	} {
		_, _, _, err := parseAnswer("GET", c.text)
		var e *http1.Error
		if !errors.As(err, &e) || e.Reason != c.reason {
			t.Errorf("%s: %v, want %s", c.name, err, c.reason)
		}
	}
}
