package message_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

var large = strings.Repeat("a", 100_000)

// TestUnreadBody checks responses of a net/http server to requests with a body that is behind another reader, as with
// Caddy. If the body was not read, the client gets the response without sending the body, and the connection is closed.
// Otherwise the connection stays open.
func TestUnreadBody(t *testing.T) {
	for _, c := range []struct {
		name, head, body string
		answer           func(w message.HTTPWriter, r *http.Request)
		closes           bool
	}{
		{"waits for permission", "HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4", "", refuse, true},
		{"sends later", "HTTP/1.1\r\nContent-Length: 4", "", refuse, true},
		{"sends an endless body", "HTTP/1.1\r\nTransfer-Encoding: chunked", "1\r\na\r\n", refuse, true},
		{"sends more than is read", "HTTP/1.1\r\nConnection: close\r\nContent-Length: 1000000", large, refuse, true},
		{"uses HTTP/1.0", "HTTP/1.0\r\nContent-Length: 1000000", large, refuse, true},
		{"an error route responds", "HTTP/1.1\r\nContent-Length: 4", "", announce, true},
		{"the handler stops reading", "HTTP/1.1\r\nContent-Length: 4", "bo", stop, true},
		{"the body was read", "HTTP/1.1\r\nContent-Length: 4", "body", read, false},
		{"there is no body", "HTTP/1.1\r\nContent-Length: 0", "", refuse, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			heard := make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Body = struct{ io.ReadCloser }{r.Body}
				writer := message.NewHTTPWriter(w, r)
				writer.FollowBody(r)
				c.answer(writer, r)
				if writer.Started() {
					_ = writer.Flush()
					<-heard
				}
				writer.EndRequest()
				if !writer.Started() {
					w.WriteHeader(http.StatusForbidden) // Caddy's error routes do this after Announce.
				}
			}))
			t.Cleanup(server.Close)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			request := "POST / " + c.head + "\r\nHost: a\r\n\r\n" + c.body
			_ = conn.SetDeadline(time.Now().Add(fixture.Patience))
			_, _ = io.WriteString(conn, request)
			from := bufio.NewReader(conn)
			got, err := http.ReadResponse(from, nil)
			close(heard)
			if err != nil || got.StatusCode != http.StatusForbidden || got.Close != c.closes {
				t.Fatalf("got %+v, %v", got, err)
			}
			_, _ = io.Copy(io.Discard, got.Body)
			_ = got.Body.Close()
			if c.closes {
				if _, err := from.ReadByte(); !errors.Is(err, io.EOF) {
					t.Errorf("after the response: %v", err)
				}
				return
			}
			_, _ = io.WriteString(conn, request)
			next, err := http.ReadResponse(from, nil)
			if err != nil || next.StatusCode != http.StatusForbidden {
				t.Fatalf("the next response is %+v, %v", next, err)
			}
			_ = next.Body.Close()
		})
	}
}

func refuse(w message.HTTPWriter, _ *http.Request) {
	_ = w.Head(&message.Response{Status: http.StatusForbidden, Length: 0})
}

func announce(w message.HTTPWriter, _ *http.Request) {
	w.Announce(&message.Response{Status: http.StatusForbidden})
}

func stop(w message.HTTPWriter, r *http.Request) {
	_, _ = io.ReadFull(r.Body, make([]byte, 2))
	w.EndBody()
	refuse(w, r)
}

func read(w message.HTTPWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	refuse(w, r)
}
