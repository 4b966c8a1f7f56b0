package httpserver_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestUnfinishedHeads checks that a client that does not complete its head in time gets 408 and the end of the
// connection. A client that has sent only empty lines gets the end of the connection without a response.
func TestUnfinishedHeads(t *testing.T) {
	options := patient()
	options.Head, options.Idle = 100*time.Millisecond, 100*time.Millisecond
	s := serve(t, echo, func(h *host) { h.limits = options })
	late := "HTTP/1.1 408 Request Timeout\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
		"34\r\nConnection: close\r\n\r\n" +
		"408 Request Timeout: head-timeout\n"
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                 {"", ""},
		"empty lines":             {"\r\n\r\n", ""},
		"a byte":                  {"G", late},
		"a head without its end":  {"GET / HTTP/1.1\r\nHost: a\r\n", late},
		"behind another request":  {get("/") + "GET / HT", ok("GET /") + late},
		"silence after a request": {get("/"), ok("GET /")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := exchange(t, s.address, c.text); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestUnfinishedHeadByBytes checks that the timeout applies to the whole head, and that single bytes do not extend it.
func TestUnfinishedHeadByBytes(t *testing.T) {
	options := patient()
	options.Head = 200 * time.Millisecond
	s := serve(t, echo, func(h *host) { h.limits = options })
	c := dial(t, s.address)
	c.send("GET / HTTP/1.1\r\nHost: ")
	go trickle(c)
	if got := c.rest(); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
		t.Errorf("got %q", got)
	}
}

// TestWholeTimeouts checks the time limits for a whole request and a whole response. Bytes that arrive or leave in time
// do not extend them.
func TestWholeTimeouts(t *testing.T) {
	const limit = 300 * time.Millisecond
	failed := make(chan error, 1)
	for name, c := range map[string]struct {
		options limits.Limits
		text    string
		handle  func(message.Writer, *message.Request)
		sends   bool
	}{
		"head": {limits.Limits{Read: limit}, "GET / HTTP/1.1\r\nA: ", nil, true},
		"body": {limits.Limits{Read: limit, Body: patience},
			crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 100000"),
			func(w message.Writer, r *message.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				failed <- err
				answer(w, 408, "")
			}, true},
		"response": {limits.Limits{Write: limit, Send: patience}, get("/"),
			func(w message.Writer, _ *message.Request) {
				_ = w.Head(&message.Response{Status: 200, Length: -1})
				for {
					<-time.After(time.Millisecond)
					if _, err := w.Write(make([]byte, 64<<10)); err != nil {
						failed <- err
						return
					}
				}
			}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.handle, func(h *host) { h.limits = &c.options })
			client := dial(t, s.address)
			began := time.Now()
			client.send(c.text)
			if c.sends {
				go trickle(client)
			}
			_, _ = io.Copy(io.Discard, client.reader)
			if took := time.Since(began); took < limit {
				t.Errorf("the connection ends after %v, before the limit", took)
			}
			var timeout net.Error
			if c.handle == nil {
				return
			}
			if err := fixture.Receive(t, "the end of the handler", failed); !asTimeout(err, &timeout) {
				t.Error(err)
			}
		})
	}
}

// trickle sends a byte every 20 ms until the connection ends.
func trickle(c *client) {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for range ticks.C {
		if _, err := io.WriteString(c.Conn, "a"); err != nil {
			return
		}
	}
}
