package httpserver_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/httpserver"
)

// TestUnfinishedHeads checks that a client that does not complete its head in time gets 408 and the end of the
// connection. A client that has sent only empty lines gets the end of the connection without a response.
func TestUnfinishedHeads(t *testing.T) {
	options := limits()
	options.HeaderTimeout, options.KeepAlive = 100*time.Millisecond, 100*time.Millisecond
	s := serve(t, echo, func(s *httpserver.Server) { s.Options = func() *httpserver.Options { return options } })
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
	options := limits()
	options.HeaderTimeout = 200 * time.Millisecond
	s := serve(t, echo, func(s *httpserver.Server) { s.Options = func() *httpserver.Options { return options } })
	c := dial(t, s.address)
	c.send("GET / HTTP/1.1\r\nHost: ")
	over := make(chan struct{})
	defer close(over)
	go func() {
		ticks := time.NewTicker(20 * time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticks.C:
				_, _ = io.WriteString(c.Conn, "a")
			}
		}
	}()
	if got := c.rest(); !strings.HasPrefix(got, "HTTP/1.1 408 ") {
		t.Errorf("got %q", got)
	}
}
