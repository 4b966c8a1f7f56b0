package http1_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// parse parses a request that arrives at once.
func parse(text string) (http1.RequestHead, *message.Request, string, error) {
	var h http1.RequestHead
	r := new(message.Request)
	var s http1.Scanner
	head, end, err := s.Find([]byte(text))
	if err != nil {
		return h, r, "", err
	}
	if head == nil {
		return h, r, "", errMore
	}
	return h, r, text[end:], h.Parse(head, r)
}

var errMore = errors.New("the head goes on")

func crlf(lines ...string) string { return strings.Join(lines, "\r\n") + "\r\n\r\n" }

// shown formats the relevant parts of a request.
func shown(h http1.RequestHead, r *message.Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s 1.%d", r.Method, r.Host, r.OutTarget(), r.Minor)
	for _, f := range r.Fields {
		fmt.Fprintf(&b, " %s=%s", f.Name, f.Value)
	}
	fmt.Fprintf(&b, " body=%d:%d", h.Framing, r.Length)
	if h.KeepAlive {
		b.WriteString(" keep")
	}
	if h.Expects {
		b.WriteString(" expects")
	}
	return b.String()
}

func TestRequestsTaken(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"plain", crlf("GET / HTTP/1.1", "Host: a"), "GET a / 1.1 body=0:0 keep"},
		{"fields in their order and spelling",
			crlf("GET /a?b HTTP/1.1", "x-B: 1", "Host: a:80", "X-a:\t 2 \t", "x-b:", "U: \x80\tv"),
			"GET a:80 /a?b 1.1 x-B=1 X-a=2 x-b= U=\x80\tv body=0:0 keep"},
		{"empty lines in front", "\r\n\r\n" + crlf("GET / HTTP/1.1", "Host: a"), "GET a / 1.1 body=0:0 keep"},
		{"any method", crlf("get / HTTP/1.1", "Host: a"), "get a / 1.1 body=0:0 keep"},
		{"names for others", crlf("GET / HTTP/1.1", "Host: a", "X_Real_IP: 1", "X.Y: 2", "ssl_client_x: 3", "X_Y: 4"),
			"GET a / 1.1 body=0:0 keep"},
		{"length", crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 5"),
			"POST a / 1.1 Content-Length=5 body=1:5 keep"},
		{"no length", crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 0"),
			"POST a / 1.1 Content-Length=0 body=0:0 keep"},
		{"chunked", crlf("POST / HTTP/1.1", "Host: a", "transfer-encoding: Chunked"), "POST a / 1.1 body=2:-1 keep"},
		{"expects", crlf("PUT / HTTP/1.1", "Host: a", "Content-Length: 5", "Expect: 100-Continue"),
			"PUT a / 1.1 Content-Length=5 Expect=100-Continue body=1:5 keep expects"},
		{"expects for nothing", crlf("PUT / HTTP/1.1", "Host: a", "Expect: 100-continue"),
			"PUT a / 1.1 Expect=100-continue body=0:0 keep"},
		{"close", crlf("GET / HTTP/1.1", "Host: a", "Connection: x, CLOSE"),
			"GET a / 1.1 Connection=x, CLOSE body=0:0"},
		{"1.0", crlf("GET / HTTP/1.0"), "GET  / 1.0 body=0:0"},
		{"1.0 keeps", crlf("GET / HTTP/1.0", "Connection: keep-alive"),
			"GET  / 1.0 Connection=keep-alive body=0:0 keep"},
		{"1.0 closes", crlf("GET / HTTP/1.0", "Connection: keep-alive", "Connection: close"),
			"GET  / 1.0 Connection=keep-alive Connection=close body=0:0"},
		{"URL", crlf("GET http://b:1?q HTTP/1.1", "Host: a"), "GET b:1 /?q 1.1 body=0:0 keep"},
		{"IPv6", crlf("GET / HTTP/1.1", "Host: [::1]:80"), "GET [::1]:80 / 1.1 body=0:0 keep"},
		{"Connection names a field", crlf("GET / HTTP/1.1", "x-auth: 1", "Host: a", "X-Real-IP: 1",
			"Connection: close, X-Auth, x-real-ip, host", "X-AUTH: 2"),
			"GET a / 1.1 X-Real-IP=1 Connection=close, X-Auth, x-real-ip, host body=0:0"},
		{"upgrade", crlf("GET / HTTP/1.1", "Host: a", "Connection: Upgrade", "Upgrade: websocket"),
			"GET a / 1.1 Connection=Upgrade Upgrade=websocket body=0:0 keep"},
	} {
		h, r, rest, err := parse(c.text + "rest")
		if got := shown(h, r); err != nil || got != c.want || rest != "rest" {
			t.Errorf("%s: %s, %v, with %q behind it", c.name, got, err, rest)
		}
	}
}

// manyFields returns a head with n fields in addition to Host.
func manyFields(n int) string {
	return "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("a: b\r\n", n) + "\r\n"
}

func names(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "n%d,", i)
	}
	return b.String()
}

func TestRequestsRefused(t *testing.T) {
	get := func(lines ...string) string { return crlf(append([]string{"GET / HTTP/1.1", "Host: a"}, lines...)...) }
	for _, c := range []struct {
		name, text string
		status     int
		reason     string
	}{
		{"length and chunks", get("Content-Length: 5", "Transfer-Encoding: chunked"), 400, "length-and-coding"},
		{"two lengths", get("Content-Length: 5", "Content-Length: 6"), 400, "two-content-lengths"},
		{"two equal lengths", get("Content-Length: 5", "Content-Length: 5"), 400, "two-content-lengths"},
		{"list of lengths", get("Content-Length: 5, 5"), 400, "content-length"},
		{"signed length", get("Content-Length: +5"), 400, "content-length"},
		{"negative length", get("Content-Length: -5"), 400, "content-length"},
		{"hexadecimal length", get("Content-Length: 0x5"), 400, "content-length"},
		{"no length in it", get("Content-Length:"), 400, "content-length"},
		{"long length", get("Content-Length: 99999999999999999999"), 413, "content-length-too-large"},
		{"unknown coding", get("Transfer-Encoding: xchunked"), 501, "transfer-encoding"},
		{"coding below chunks", get("Transfer-Encoding: gzip, chunked"), 501, "transfer-encoding"},
		{"identity", get("Transfer-Encoding: identity"), 501, "transfer-encoding"},
		{"chunked twice", get("Transfer-Encoding: chunked, chunked"), 400, "two-transfer-encodings"},
		{"chunked in two fields", get("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"), 400,
			"two-transfer-encodings"},
		{"space before colon", get("Transfer-Encoding : chunked"), 400, "space-before-colon"},
		{"tab before colon", get("A\t: chunked"), 400, "space-before-colon"},
		{"control in coding", get("Transfer-Encoding: \x0bchunked"), 400, "control-character"},
		{"chunks in 1.0", crlf("GET / HTTP/1.0", "Transfer-Encoding: chunked"), 400, "transfer-encoding-in-1.0"},
		{"bare LF in the first line", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400, "bare-lf"},
		{"bare LF", "GET / HTTP/1.1\r\nHost: a\n\r\n", 400, "bare-lf"},
		{"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", 400, "bare-lf"},
		{"bare CR", get("A: b\rC: d"), 400, "control-character"},
		{"CR CR LF", get("A: b\r"), 400, "control-character"},
		{"folded", get("A: b", " c"), 400, "folded-line"},
		{"folded first", crlf("GET / HTTP/1.1", " Host: a", "Host: a"), 400, "folded-line"},
		{"NUL", get("A: b\x00c"), 400, "control-character"},
		{"DEL", get("A: b\x7fc"), 400, "control-character"},
		{"NUL in name", get("A\x00: b"), 400, "field-name"},
		{"letter of another alphabet in name", get("\u00c4: b"), 400, "field-name"},
		{"no name", get(": b"), 400, "field-name"},
		{"no colon", get("A"), 400, "field-name"},
		{"no host", crlf("GET / HTTP/1.1"), 400, "no-host"},
		{"empty host", crlf("GET / HTTP/1.1", "Host:"), 400, "no-host"},
		{"no host with a URL", crlf("GET http://a/ HTTP/1.1"), 400, "no-host"},
		{"two hosts", get("host: a"), 400, "two-hosts"},
		{"two hosts in 1.0", crlf("GET / HTTP/1.0", "Host: a", "Host: b"), 400, "two-hosts"},
		{"path in host", crlf("GET / HTTP/1.1", "Host: a/evil"), 400, "host"},
		{"user in host", crlf("GET / HTTP/1.1", "Host: a@evil"), 400, "host"},
		{"space in host", crlf("GET / HTTP/1.1", "Host: a b"), 400, "host"},
		{"port of letters", crlf("GET / HTTP/1.1", "Host: a:b"), 400, "host"},
		{"port alone", crlf("GET / HTTP/1.1", "Host: :80"), 400, "host"},
		{"two ports", crlf("GET / HTTP/1.1", "Host: a:80:80"), 400, "host"},
		{"zone", crlf("GET / HTTP/1.1", "Host: [fe80::1%eth0]"), 400, "host"},
		{"IPv4 in brackets", crlf("GET / HTTP/1.1", "Host: [1.2.3.4]"), 400, "host"},
		{"bracket left open", crlf("GET / HTTP/1.1", "Host: [::1"), 400, "host"},
		{"long host", crlf("GET / HTTP/1.1", "Host: "+strings.Repeat("a", 261)), 400, "host"},
		{"bad host with a URL", crlf("GET http://a/ HTTP/1.1", "Host: a/b"), 400, "host"},
		{"bad host in a URL", crlf("GET http://a#b/ HTTP/1.1", "Host: a"), 400, "host"},
		{"user in a URL", crlf("GET http://u@a/ HTTP/1.1", "Host: a"), 400, "target"},
		{"*", crlf("GET * HTTP/1.1", "Host: a"), 400, "target"},
		{"OPTIONS *", crlf("OPTIONS * HTTP/1.1", "Host: a"), 400, "target"},
		{"other scheme", crlf("GET ftp://a/ HTTP/1.1", "Host: a"), 400, "target"},
		{"scheme in a path", crlf("GET a/b://a/ HTTP/1.1", "Host: a"), 400, "target"},
		{"escape cut off", crlf("GET /%a HTTP/1.1", "Host: a"), 400, "target"},
		{"NUL in path", crlf("GET /x%00/admin HTTP/1.1", "Host: a"), 400, "nul-in-path"},
		{"CONNECT", crlf("CONNECT a:443 HTTP/1.1", "Host: a"), 405, "method-not-served"},
		{"TRACE", crlf("TRACE / HTTP/1.1", "Host: a"), 405, "method-not-served"},
		{"PROXY", crlf("PROXY TCP4 1.1.1.1 2.2.2.2 1 2", "GET / HTTP/1.1", "Host: a"), 400, "request-line"},
		{"HTTP/2", http1.Preface + "\r\n", 400, "http2-preface"},
		{"HTTP/2 with a path", crlf("GET / HTTP/2.0", "Host: a"), 505, "version"},
		{"HTTP/1.2", crlf("GET / HTTP/1.2", "Host: a"), 505, "version"},
		{"HTTP/0.9", "GET /\r\n\r\n", 400, "request-line"},
		{"http/1.1", crlf("GET / http/1.1", "Host: a"), 400, "request-line"},
		{"HTTP/1.1 and more", crlf("GET / HTTP/1.1 ", "Host: a"), 400, "request-line"},
		{"two spaces", crlf("GET  / HTTP/1.1", "Host: a"), 400, "request-line"},
		{"space in target", crlf("GET /a b HTTP/1.1", "Host: a"), 400, "request-line"},
		{"tab in target", crlf("GET /a\tb HTTP/1.1", "Host: a"), 400, "request-line"},
		{"DEL in target", crlf("GET /a\x7f HTTP/1.1", "Host: a"), 400, "request-line"},
		{"method", crlf("G(T / HTTP/1.1", "Host: a"), 400, "method"},
		{"space in front", crlf(" GET / HTTP/1.1", "Host: a"), 400, "method"},
		{"empty lines", "\r\n\r\n\r\n\r\n\r\n", 400, "empty-lines"},
		{"TLS", "\x16\x03\x01\x02\x00", 400, "method"},
		{"many fields", manyFields(257), 431, "many-fields"},
		{"many names in Connection", get("Connection: " + names(33)), 400, "connection"},
		{"Expect", get("Expect: x"), 417, "expect"},
		{"two Authorization", get("Authorization: a", "authorization: b"), 400, "two-authorizations"},
		{"two Expect", get("Expect: 100-continue", "Expect: 100-continue"), 417, "expect"},
		{"two Expect, one empty", get("Expect:", "Expect: 100-continue"), 417, "expect"},
	} {
		_, _, _, err := parse(c.text)
		var e *http1.Error
		if !errors.As(err, &e) || e.Status != c.status || e.Reason != c.reason {
			t.Errorf("%s: %v, want %d %s", c.name, err, c.status, c.reason)
		}
	}
	if _, _, _, err := parse(manyFields(256)); err != nil {
		t.Error(err)
	}
}

// TestScannerTakesPieces checks that the result does not depend on the pieces in which a head arrives.
func TestScannerTakesPieces(t *testing.T) {
	text := "\r\n" + crlf("POST /a HTTP/1.1", "Host: a", "B: c") + "rest"
	for i := range text {
		for j := i; j < len(text); j++ {
			var s http1.Scanner
			for _, piece := range []int{i, j, len(text)} {
				head, end, err := s.Find([]byte(text[:piece]))
				if err != nil {
					t.Fatal(i, j, err)
				}
				complete := piece >= len(text)-len("rest")
				if complete != (head != nil) || complete && (end != len(text)-len("rest") || head[0] != 'P') {
					t.Fatalf("%d of %d, %d: %q, %d", piece, i, j, head, end)
				}
				if complete {
					break
				}
			}
		}
	}
}

// TestParsedOutlivesItsBuffer checks that no string of a parsed request points into the buffer of the head.
func TestParsedOutlivesItsBuffer(t *testing.T) {
	var h http1.RequestHead
	var r message.Request
	head := []byte(crlf("POST http://b.example/a%20b?q HTTP/1.1", "Host: a", "X-Y: z", "Connection: close"))
	if err := h.Parse(head, &r); err != nil {
		t.Fatal(err)
	}
	before := shown(h, &r)
	for i := range head {
		head[i] = 0xee
	}
	if after := shown(h, &r); after != before || r.Target != "/a%20b?q" || strings.ContainsRune(r.Path, 0xee) {
		t.Errorf("%q became %q, %q", before, after, r.Target)
	}
}
