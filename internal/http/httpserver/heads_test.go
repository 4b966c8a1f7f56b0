package httpserver_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/http/message"
)

// TestUnfinishedHeads checks that a client that does not complete its head in time gets 408 and the end of the
// connection. A client that has sent only empty lines gets the end of the connection without a response.
func TestUnfinishedHeads(t *testing.T) {
	options := patient()
	options.Head, options.Idle = 100*time.Millisecond, 100*time.Millisecond
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
			synctest.Test(t, func(t *testing.T) {
				if got := piped(t, &host{handle: echo, limits: options}).exchange(c.text); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestUnfinishedHeadByBytes checks that the timeout applies to the whole head, and that single bytes do not extend it.
func TestUnfinishedHeadByBytes(t *testing.T) {
	options := patient()
	options.Head = 200 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, &host{handle: echo, limits: options})
		begin := time.Now()
		c.send("GET / HTTP/1.1\r\nHost: ")
		go trickle(c)
		if got := c.rest(); !strings.HasPrefix(got, "HTTP/1.1 408 ") || time.Since(begin) != options.Head {
			t.Errorf("got %q after %v", got, time.Since(begin))
		}
	})
}

// TestWholeTimeouts checks the time limits for a whole request and a whole response. Bytes that arrive or leave in time
// do not extend them.
func TestWholeTimeouts(t *testing.T) {
	// The server notices the end of the limit at the latest with the next write, which follows after the pause.
	const limit, pause = 300 * time.Millisecond, time.Millisecond
	var failed error
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
				_, failed = io.Copy(io.Discard, r.Body)
				answer(w, 408, "")
			}, true},
		"response": {limits.Limits{Write: limit, Send: patience}, get("/"),
			func(w message.Writer, _ *message.Request) {
				_ = w.Head(&message.Response{Status: 200, Length: -1})
				for failed = nil; failed == nil; _, failed = w.Write(make([]byte, 64<<10)) {
					<-time.After(pause)
				}
			}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := piped(t, &host{handle: c.handle, limits: &c.options})
				began := time.Now()
				client.send(c.text)
				if c.sends {
					go trickle(client)
				}
				_, _ = io.Copy(io.Discard, client.reader)
				if took := time.Since(began); took < limit || took > limit+pause {
					t.Errorf("the connection ends after %v, want %v", took, limit)
				}
				synctest.Wait()
				var timeout net.Error
				if c.handle != nil && !asTimeout(failed, &timeout) {
					t.Error(failed)
				}
			})
		})
	}
}

// trickle sends a byte every 20 ms until the connection or the test ends.
func trickle(c *client) {
	ticks := time.NewTicker(20 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case <-c.t.Context().Done():
			return
		case <-ticks.C:
		}
		if _, err := io.WriteString(c.Conn, "a"); err != nil {
			return
		}
	}
}
