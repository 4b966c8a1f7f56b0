package http1_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"reflect"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// FuzzRequest checks that net/http accepts each request that is accepted here and parses it in the same way, and that
// the request stays the same if it is written and parsed again.
func FuzzRequest(f *testing.F) {
	for _, text := range []string{
		crlf("GET / HTTP/1.1", "Host: a"),
		crlf("POST /a%20b?c HTTP/1.1", "Host: [::1]:80", "Content-Length: 5", "Expect: 100-continue") + "hello",
		crlf("GET http://a:1?x HTTP/1.1", "Host: b", "A: b", "a:c", "X_y: z", "Connection: A, close"),
		crlf("GET / HTTP/1.0", "Connection: keep-alive"),
		crlf("PUT / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked", "Trailer: x", "Pragma: no-cache") + "0\r\n\r\n",
		"\r\n" + crlf("GET //x//y HTTP/1.1", "Host: a", "Upgrade: websocket", "Connection: upgrade"),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s http1.Scanner
		head, _, err := s.Find(text)
		if err != nil || head == nil {
			return
		}
		var h http1.RequestHead
		var r message.Request
		if err := h.Parse(head, &r); err != nil {
			var e *http1.Error
			if !errors.As(err, &e) || e.Status < 400 {
				t.Fatalf("%v", err)
			}
			return
		}
		compareRequest(t, head, h, &r)
		rewriteRequest(t, h, &r)
	})
}

func compareRequest(t *testing.T, head []byte, h http1.RequestHead, r *message.Request) {
	t.Helper()
	want, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		if strings.Contains(err.Error(), "bad trailer key") {
			return // Such trailer fields are dropped here.
		}
		t.Fatalf("net/http refuses: %v", err)
	}
	path := want.URL.Path
	if path == "" {
		path = "/" // message.SetTarget sets the path of a URL without a path to "/".
	}
	keep, chunked := !want.Close, len(want.TransferEncoding) > 0
	got1 := fmt.Sprintf("%s %q %s %q at %s, 1.%d, %d bytes, %v, %v", r.Method, r.Path, r.OutTarget(), r.Query, r.Host,
		r.Minor, r.Length, h.KeepAlive,
		h.Framing == http1.Chunked)
	want1 := fmt.Sprintf("%s %q %s %q at %s, 1.%d, %d bytes, %v, %v", want.Method, path, want.URL.RequestURI(),
		want.URL.RawQuery, want.Host,
		want.ProtoMinor, want.ContentLength, keep, chunked)
	if got1 != want1 {
		t.Fatalf("%s\nnet/http has %s", got1, want1)
	}
	got := r.Fields.Header()
	unlike(want.Header)
	for _, name := range []string{"Host", "Trailer", "Cache-Control"} {
		delete(got, name)
		delete(want.Header, name)
	}
	if !reflect.DeepEqual(got, want.Header) {
		t.Fatalf("%q\nnet/http has %q", got, want.Header)
	}
}

// unlike removes the fields that are intentionally missing here. net/http also removes Trailer, and adds Cache-Control
// if there is Pragma.
func unlike(header http.Header) {
	var nominated []string
	for _, value := range header["Connection"] {
		nominated = append(nominated, strings.Split(value, ",")...)
	}
	maps.DeleteFunc(header, func(name string, _ []string) bool {
		kind := message.KindOf(name)
		if kind.Mistakable() {
			return true // Endpoints could confuse such a name with another one.
		}
		if kind.Hop() || kind.Spoofable() || kind == message.SSLClient || kind == message.Expect {
			return false // Clients cannot remove these fields with Connection.
		}
		for _, option := range nominated {
			if strings.EqualFold(strings.Trim(option, " \t"), name) {
				return true // The client declared these fields as hop-by-hop.
			}
		}
		return false
	})
}

// rewriteRequest checks that an accepted request can be written, and that it is the same when it is parsed again.
func rewriteRequest(t *testing.T, h http1.RequestHead, r *message.Request) {
	t.Helper()
	if r.Host == "" {
		return
	}
	line := http1.RequestLine{Method: r.Method, Target: r.OutTarget(), Host: r.Host, Framing: h.Framing,
		Length: r.Length}
	text, err := http1.AppendRequestHead(nil, &line, r.Fields)
	if err != nil {
		t.Fatalf("it cannot be written: %v", err)
	}
	h2, r2, rest, err := parse(string(text))
	if err != nil || rest != "" || r2.OutTarget() != r.OutTarget() || r2.Host != r.Host || r2.Length != r.Length ||
		h2.Framing != h.Framing {
		t.Fatalf("written: %q, %v", text, err)
	}
	if got, want := onward(r2.Fields), onward(r.Fields); !reflect.DeepEqual(got, want) {
		t.Fatalf("written: %q\nbefore: %q", got, want)
	}
}

// onward returns the fields that are written, in order.
func onward(fields message.Fields) (kept message.Fields) {
	for _, f := range fields {
		if !f.Kind.Hop() {
			kept = append(kept, f)
		}
	}
	return kept
}

// FuzzScanner checks that the end of a head does not depend on the size of the pieces in which it arrives, that input
// is rejected in pieces as well as at once, and that no byte after the head is needed.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{
		crlf("GET / HTTP/1.1", "Host: a") + crlf("GET /behind HTTP/1.1", "Host: b"),
		"\r\n\r\n" + crlf("GET / HTTP/1.1"), "GET /\n\n", "\r\r\n",
		"GET / HTTP/1.1\r\nA: b\n\r\n", "HTTP/1.1 200 OK\nA: b\n\nbody", "HTTP/1.1 200 OK\r\n\r\n",
		"\r\n\r\n\r\n\r\n\r\n\r\n", "\x16\x03\x01",
	} {
		f.Add([]byte(text), 1, false)
		f.Add([]byte(text), 3, true)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int, response bool) {
		whole := http1.Scanner{Response: response}
		head, end, err := whole.Find(text)
		pieces := http1.Scanner{Response: response}
		piece = 1 + abs(piece)%64
		for at := 0; ; {
			at = min(at+piece, len(text))
			got, gotEnd, gotErr := pieces.Find(text[:at:at])
			switch {
			case got == nil && gotErr == nil && at < len(text):
				continue
			case gotErr != nil && (err != nil || parseError(head, response) != nil):
				// Input that cannot be HTTP is rejected at its first byte.
			case !bytes.Equal(got, head) || gotEnd != end || gotErr != nil || err != nil:
				t.Fatalf("in pieces of %d: %q, %d, %v; whole: %q, %d, %v", piece, got, gotEnd, gotErr, head, end, err)
			case got != nil && at >= end+piece:
				t.Fatalf("the head ends at %d, and that was not known before %d", end, at)
			}
			return
		}
	})
}

func parseError(head []byte, response bool) error {
	if response {
		return new(http1.ResponseHead).Parse(head, http.MethodGet, new(message.Response))
	}
	return new(http1.RequestHead).Parse(head, new(message.Request))
}

// FuzzResponse checks that net/http parses each accepted response in the same way.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{
		crlf("HTTP/1.1 200 OK", "Content-Length: 5", "A: b") + "hello",
		crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: a") + "0\r\n\r\n",
		crlf("HTTP/1.0 200 OK", "Connection: keep-alive, A", "A: b"),
		crlf("HTTP/1.1 304", "Content-Length: 5", "Content-Length: 5"),
		"HTTP/1.1 103 Early Hints\nLink: a\n\n",
		crlf("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"),
	} {
		f.Add([]byte(text), false)
		f.Add([]byte(text), true)
	}
	f.Fuzz(func(t *testing.T, text []byte, head bool) {
		method := http.MethodGet
		if head {
			method = http.MethodHead
		}
		s := http1.Scanner{Response: true}
		bytesOfHead, _, err := s.Find(text)
		if err != nil || bytesOfHead == nil {
			return
		}
		var h http1.ResponseHead
		var a message.Response
		if h.Parse(bytesOfHead, method, &a) != nil {
			return
		}
		compareAnswer(t, bytesOfHead, method, h, &a)
		rewriteAnswer(t, method, h, &a)
	})
}

// rewriteAnswer checks that an accepted response can be written, and that it is the same when it is parsed again. The
// framing of an interim response is not written.
func rewriteAnswer(t *testing.T, method string, h http1.ResponseHead, a *message.Response) {
	t.Helper()
	text, err := http1.AppendResponseHead(nil, a, &http1.ResponseOptions{Chunked: h.Framing == http1.Chunked})
	if err != nil {
		t.Fatalf("it cannot be written: %v", err)
	}
	s := http1.Scanner{Response: true}
	head, end, err := s.Find(text)
	if err != nil || end != len(text) {
		t.Fatalf("written: %q, %v", text, err)
	}
	var h2 http1.ResponseHead
	var a2 message.Response
	if err := h2.Parse(head, method, &a2); err != nil || a2.Status != a.Status || h2.Framing != h.Framing ||
		a2.Length != a.Length {
		t.Fatalf("written: %q, %v, %d bytes; before: %d bytes", text, err, a2.Length, a.Length)
	}
	if got, want := onward(a2.Fields), onward(a.Fields); !reflect.DeepEqual(got, want) {
		t.Fatalf("written: %q\nbefore: %q", got, want)
	}
}

func compareAnswer(t *testing.T, head []byte, method string, h http1.ResponseHead, a *message.Response) {
	t.Helper()
	http10 := bytes.HasPrefix(head, []byte("HTTP/1.0"))
	reader := bufio.NewReader(bytes.NewReader(head))
	want, err := http.ReadResponse(reader, &http.Request{Method: method}) //nolint:bodyclose // It has no body.
	if err != nil {
		if strings.Contains(err.Error(), "bad trailer key") ||
			strings.Contains(err.Error(), "multiple Content-Length") {
			return // Such trailer fields are dropped here, and a length of 05 is read as 5.
		}
		t.Fatalf("net/http refuses: %v", err)
	}
	compareAnswerFields(t, a, want)
	coded := strings.Contains(strings.ToLower(string(head)), "transfer-encoding")
	switch {
	case coded && (http10 || bytes.Contains(bytes.ToLower(head), []byte("content-length"))):
		// Chunks in HTTP/1.0 or together with a length are decoded here, and the connection is closed.
	case a.Status < http.StatusOK || a.Status == http.StatusNoContent:
		// These responses have no body. For a HEAD request, net/http reports an unknown length.
	case a.Status == http.StatusNotModified:
		// The length in a 304 response is forwarded.
	case a.Length != want.ContentLength:
		t.Fatalf("length %d, net/http has %d", a.Length, want.ContentLength)
	case h.KeepAlive == want.Close && h.Framing != http1.NoBody:
		t.Fatalf("keep-alive %v, net/http closes %v", h.KeepAlive, want.Close)
	}
}

func compareAnswerFields(t *testing.T, a *message.Response, want *http.Response) {
	t.Helper()
	if a.Status != want.StatusCode {
		t.Fatalf("status %d, net/http has %d", a.Status, want.StatusCode)
	}
	var nominated []string
	for _, value := range want.Header["Connection"] {
		nominated = append(nominated, strings.Split(value, ",")...)
	}
	for _, option := range nominated {
		if name := strings.Trim(option, " \t"); !message.KindOf(name).Hop() {
			want.Header.Del(name)
		}
	}
	maps.DeleteFunc(want.Header, func(name string, _ []string) bool {
		kind := message.KindOf(name)
		return kind.Hop() && (a.Status != http.StatusSwitchingProtocols || kind != message.Connection &&
			kind != message.Upgrade)
	})
	got := a.Fields.Header()
	if want.Header.Get("Pragma") != "" {
		// net/http adds Cache-Control.
		delete(want.Header, "Cache-Control")
		delete(got, "Cache-Control")
	}
	if a.Status == http.StatusSwitchingProtocols {
		// net/http removes "close" from Connection.
		delete(want.Header, "Connection")
		delete(got, "Connection")
	}
	if fmt.Sprint(got) != fmt.Sprint(want.Header) {
		t.Fatalf("%q\nnet/http has %q", got, want.Header)
	}
}

// FuzzChunks checks that the result does not depend on the pieces in which a body arrives, and that net/http reads the
// same body.
func FuzzChunks(f *testing.F) {
	for _, text := range []string{
		"0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\nrest", "A;x\r\n0123456789\r\n1\r\na\r\n0\r\nA: b\r\n\r\n",
		"5 \r\nhello\r\n0\r\n\r\n",
		"0\r\nX: y\r\nz: \r\n\r\n",
	} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 7)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		body, trailers, rest, err := decode(string(text), len(text)+1)
		body2, trailers2, rest2, err2 := decode(string(text), 1+abs(piece)%64)
		if body != body2 || trailers != trailers2 || err == nil && rest != rest2 || (err == nil) != (err2 == nil) {
			t.Fatalf("%q, %q, %q, %v; in pieces %q, %q, %q, %v", body, trailers, rest, err, body2,
				trailers2, rest2, err2)
		}
		if err != nil {
			return
		}
		reader := bufio.NewReader(bytes.NewReader(text))
		want, err := io.ReadAll(httputil.NewChunkedReader(reader))
		spaced := bytes.Contains(text, []byte(" ;")) || bytes.Contains(text, []byte("\t;"))
		if spaced && err != nil && strings.Contains(err.Error(), "invalid byte in chunk length") {
			return // RFC 9112 7.1.1 allows spaces before an extension.
		}
		if err != nil || string(want) != body {
			t.Fatalf("%q, net/http has %q, %v", body, want, err)
		}
		rewriteChunks(t, body, 1+abs(piece)%64)
	})
}

// rewriteChunks checks that a body that is written in chunks of a given size is read back unchanged.
func rewriteChunks(t *testing.T, body string, size int) {
	t.Helper()
	var text []byte
	for left := body; left != ""; {
		n := min(size, len(left))
		text = append(append(http1.AppendChunkHead(text, n), left[:n]...), http1.EndOfChunk...)
		left = left[n:]
	}
	text, err := http1.AppendLastChunk(text, message.Fields{message.NewField("X-A", "b")})
	if err != nil {
		t.Fatal(err)
	}
	if got, trailers, rest, err := decode(string(text), size); got != body || trailers != "X-A=b " ||
		rest != "" || err != nil {
		t.Fatalf("written: %q, %q, %q, %v; before: %q", got, trailers, rest, err, body)
	}
}

func abs(n int) int { return max(n, -(n + 1)) }
