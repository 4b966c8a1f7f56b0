package http1_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

func fields(pairs ...string) (all message.Fields) {
	for i := 0; i < len(pairs); i += 2 {
		all.Add(message.NewField(pairs[i], pairs[i+1]))
	}
	return all
}

func TestRequestsWritten(t *testing.T) {
	for _, c := range []struct {
		name string
		line http1.RequestLine
		more message.Fields
		want string
	}{
		{"plain", http1.RequestLine{Method: "GET", Target: "/a?b", Host: "h"},
			fields("x-A", "1", "Connection", "x", "Content-Length", "7"),
			crlf("GET /a?b HTTP/1.1", "Host: h", "x-A: 1")},
		{"sized", http1.RequestLine{Method: "GET", Target: "/", Host: "h", Framing: http1.Sized, Length: 5}, nil,
			crlf("GET / HTTP/1.1", "Host: h", "Content-Length: 5")},
		{"chunked", http1.RequestLine{Method: "POST", Target: "/", Host: "h", Framing: http1.Chunked},
			fields("TE", "trailers"),
			crlf("POST / HTTP/1.1", "Host: h", "Transfer-Encoding: chunked")},
		{"closing", http1.RequestLine{Method: "GET", Target: "/", Host: "h", Close: true}, nil,
			crlf("GET / HTTP/1.1", "Host: h", "Connection: close")},
		{"empty", http1.RequestLine{Method: "POST", Target: "/", Host: "h"}, nil,
			crlf("POST / HTTP/1.1", "Host: h", "Content-Length: 0")},
		{"upgrade", http1.RequestLine{Method: "GET", Target: "/", Host: "", Upgrade: "websocket"}, nil,
			crlf("GET / HTTP/1.1", "Host: ", "Connection: Upgrade", "Upgrade: websocket")},
	} {
		got, err := http1.AppendRequestHead([]byte("before"), &c.line, c.more)
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestResponsesWritten(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  message.Response
		options http1.ResponseOptions
		want    string
	}{
		{"sized", message.Response{Status: 200, Length: 5,
			Fields: fields("A", "b", "Transfer-Encoding", "x", "connection", "x")},
			http1.ResponseOptions{Date: "now"},
			crlf("HTTP/1.1 200 OK", "A: b", "Date: now", "Content-Length: 5")},
		{"dated", message.Response{Status: 200, Length: 0, Fields: fields("date", "then")},
			http1.ResponseOptions{Date: "now", Close: true},
			crlf("HTTP/1.1 200 OK", "date: then", "Content-Length: 0", "Connection: close")},
		{"chunked", message.Response{Status: 200, Length: -1, Trailers: []string{"A", "B"}},
			http1.ResponseOptions{Chunked: true},
			crlf("HTTP/1.1 200 OK", "Transfer-Encoding: chunked", "Trailer: A, B")},
		{"1.0", message.Response{Status: 200, Length: 5}, http1.ResponseOptions{HTTP10: true, KeepAlive: true},
			crlf("HTTP/1.0 200 OK", "Content-Length: 5", "Connection: keep-alive")},
		{"until close", message.Response{Status: 299, Length: -1}, http1.ResponseOptions{Close: true},
			crlf("HTTP/1.1 299 ", "Connection: close")},
		{"204", message.Response{Status: 204, Length: 0}, http1.ResponseOptions{}, crlf("HTTP/1.1 204 No Content")},
		{"304", message.Response{Status: 304, Length: 5}, http1.ResponseOptions{},
			crlf("HTTP/1.1 304 Not Modified", "Content-Length: 5")},
		{"103", message.Response{Status: 103, Length: -1, Fields: fields("Link", "a")},
			http1.ResponseOptions{Close: true},
			crlf("HTTP/1.1 103 Early Hints", "Link: a")},
		{"101", message.Response{Status: 101, Fields: fields("Connection", "Upgrade", "Upgrade", "x", "TE", "x")},
			http1.ResponseOptions{},
			crlf("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: x")},
	} {
		got, err := http1.AppendResponseHead([]byte("before"), &c.answer, &c.options)
		if err != nil || string(got) != "before"+c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

// TestNothingEndsALine checks that no value can end its line.
func TestNothingEndsALine(t *testing.T) {
	for _, bad := range []string{"a\r\nb: c", "a\nb", "a\rb", "a\x00b", "a\x7fb", "a\x0bb", "12345678\n",
		"1234567\r", "\n"} {
		ok := http1.RequestLine{Method: "GET", Target: "/", Host: "h"}
		for name, change := range map[string]func(*http1.RequestLine){
			"method":  func(l *http1.RequestLine) { l.Method = bad },
			"target":  func(l *http1.RequestLine) { l.Target = bad },
			"host":    func(l *http1.RequestLine) { l.Host = bad },
			"upgrade": func(l *http1.RequestLine) { l.Upgrade = bad },
		} {
			line := ok
			change(&line)
			if got, err := http1.AppendRequestHead([]byte("before"), &line); err == nil || string(got) != "before" {
				t.Errorf("%s %q is written: %q", name, bad, got)
			}
		}
		for _, f := range []message.Fields{fields("a", bad), fields(bad, "a"), fields("", "a"), fields("a b", "c"),
			fields("a:", "c")} {
			if got, err := http1.AppendRequestHead([]byte("before"), &ok, f); err == nil || string(got) != "before" {
				t.Errorf("%q is written in a request: %q", f, got)
			}
			a := message.Response{Status: 200, Fields: f}
			if got, err := http1.AppendResponseHead([]byte("before"), &a, new(http1.ResponseOptions)); err == nil ||
				string(got) != "before" {
				t.Errorf("%q is written in an answer: %q", f, got)
			}
		}
		a := message.Response{Status: 200, Length: -1, Trailers: []string{bad}}
		if _, err := http1.AppendResponseHead(nil, &a, &http1.ResponseOptions{Chunked: true}); err == nil {
			t.Errorf("trailer %q is announced", bad)
		}
	}
	for _, target := range []string{"", "/a b", "/a\tb"} {
		if _, err := http1.AppendRequestHead(nil,
			&http1.RequestLine{Method: "GET", Target: target, Host: "h"}); err == nil {
			t.Errorf("target %q is written", target)
		}
	}
	for _, status := range []int{-1, 0, 99, 1000} {
		if _, err := http1.AppendResponseHead(nil, &message.Response{Status: status},
			new(http1.ResponseOptions)); err == nil {
			t.Errorf("status %d is written", status)
		}
	}
}
