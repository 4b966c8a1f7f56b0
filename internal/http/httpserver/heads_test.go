package httpserver_test

import (
	"io"
	"strings"
	"testing"
	"time"
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
