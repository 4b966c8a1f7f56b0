package front_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// wrapEach is a listener wrapper that calls a function with each connection. The function returns the connection to
// serve, or nil if it has taken the connection over.
type wrapEach func(net.Conn) net.Conn

func (w wrapEach) WrapListener(l net.Listener) net.Listener { return each{l, w} }

type each struct {
	net.Listener
	wrap wrapEach
}

func (e each) Accept() (net.Conn, error) {
	for {
		conn, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if conn = e.wrap(conn); conn != nil {
			return conn, nil
		}
	}
}

// opaque is a connection as most wrappers return it: it embeds the wrapped connection, and has no method NetConn.
type opaque struct{ net.Conn }

// hidden is a connection that does not reveal the wrapped connection.
type hidden struct{ conn }

type conn interface{ net.Conn }

// wrapWith sets the listener wrappers of the servers that are loaded later, until the test ends.
func wrapWith(t *testing.T, beforeTLS, afterTLS []caddy.ListenerWrapper) {
	hooks.Store(&hook{beforeTLS: beforeTLS, afterTLS: afterTLS})
	t.Cleanup(func() { hooks.Store(nil) })
}

// secureClient opens a TLS connection.
func secureClient(t *testing.T, address string, protocols ...string) *client {
	t.Helper()
	return talk(t, tls.Client(dial(t, "tcp", address).Conn,
		&tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: protocols}))
}

// noConnections waits until the connection limiter counts no connection.
func noConnections(t *testing.T) {
	t.Helper()
	fixture.Eventually(t, "the end of all connections", func() error {
		if used := front.Process().Clients().Used; used != 0 {
			return fmt.Errorf("%d connections are counted", used)
		}
		return nil
	})
}

// TestWrappers checks that listener wrappers get each connection, before or after the TLS handshake, and that the
// connections that they return are served and counted, however they wrap them.
func TestWrappers(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"the same connection": func(c net.Conn) net.Conn { return c },
		"embedded":            func(c net.Conn) net.Conn { return opaque{opaque{c}} },
		"with NetConn":        func(c net.Conn) net.Conn { return wrapped{c} },
		"hidden":              func(c net.Conn) net.Conn { return &hidden{c} },
	} {
		t.Run(name, func(t *testing.T) {
			noConnections(t)
			var before, after, secure atomic.Int64
			counting := func(n *atomic.Int64) caddy.ListenerWrapper {
				return wrapEach(func(c net.Conn) net.Conn {
					n.Add(1)
					if _, ok := c.(*tls.Conn); ok {
						secure.Add(1)
					}
					return wrap(c)
				})
			}
			wrapWith(t, []caddy.ListenerWrapper{counting(&before)}, []caddy.ListenerWrapper{counting(&after)})
			plain, withTLS := fixture.Address(t), fixture.Address(t)
			start(t, nil)
			servers := map[string]server{"one": fronted(plain, "one"), "two": frontedWithTLS(withTLS)}
			if err := load(servers, keys(t)); err != nil {
				t.Fatal(err)
			}
			for _, c := range []*client{dial(t, "tcp", plain), secureClient(t, withTLS)} {
				word := "one"
				if _, ok := c.Conn.(*tls.Conn); ok {
					word = "two"
				}
				c.expectResponse(t, word)
				c.expectResponse(t, word)
				_ = c.Close()
			}
			if before.Load() != 2 || after.Load() != 2 || secure.Load() != 1 {
				t.Errorf("wrappers before TLS got %d connections, after TLS %d, %d of them with TLS; want 2, 2, 1",
					before.Load(), after.Load(), secure.Load())
			}
			noConnections(t)
		})
	}
}

// TestWrappersWithHTTP2 checks that a wrapper after TLS does not hide the negotiated protocol.
func TestWrappersWithHTTP2(t *testing.T) {
	wrapWith(t, nil, []caddy.ListenerWrapper{wrapEach(func(c net.Conn) net.Conn { return opaque{c} })})
	address := fixture.Address(t)
	start(t, nil)
	s := frontedWithTLS(address)
	s.word = "two {http.request.scheme}"
	if err := load(map[string]server{"two": s}, keys(t)); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{ServerName: "h", InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: fixture.Patience}).Get("https://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || string(body) != "two https" || response.ProtoMajor != 2 {
		t.Errorf("%q with HTTP/%d, %v", body, response.ProtoMajor, err)
	}
}

// TestWrappersThatAnswer checks that a connection which a wrapper answers and closes is no longer counted.
func TestWrappersThatAnswer(t *testing.T) {
	noConnections(t)
	answer := wrapEach(func(c net.Conn) net.Conn {
		_, _ = io.WriteString(c, "busy")
		_ = c.Close()
		return nil
	})
	wrapWith(t, []caddy.ListenerWrapper{answer}, nil)
	address := fixture.Address(t)
	start(t, map[string]server{"one": fronted(address, "one")})
	for range 3 {
		if text, err := io.ReadAll(dial(t, "tcp", address).Conn); err != nil || string(text) != "busy" {
			t.Errorf("the client reads %q, %v", text, err)
		}
	}
	noConnections(t)
}

// TestWrappersThatKeep checks that a connection which a wrapper keeps stays open and counted, but that its server can
// end without it.
func TestWrappersThatKeep(t *testing.T) {
	noConnections(t)
	kept := make(chan net.Conn, 1)
	keep := wrapEach(func(c net.Conn) net.Conn {
		kept <- c
		return nil
	})
	wrapWith(t, []caddy.ListenerWrapper{keep}, nil)
	address := fixture.Address(t)
	start(t, map[string]server{"one": fronted(address, "one")})
	c := dial(t, "tcp", address)
	conn := fixture.Receive(t, "the connection", kept)
	if err := load(nil, "{}"); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the end of the server", func() error {
		if n := front.Draining(); n > 0 {
			return fmt.Errorf("%d servers wait for connections", n)
		}
		return nil
	})
	if used := front.Process().Clients().Used; used != 1 {
		t.Errorf("%d connections are counted, want 1", used)
	}
	if _, err := io.WriteString(conn, "still here"); err != nil {
		t.Error(err)
	}
	_ = conn.Close()
	if text, err := io.ReadAll(c.Reader); err != nil || string(text) != "still here" {
		t.Errorf("the client reads %q, %v", text, err)
	}
	noConnections(t)
}

// TestWrappersUnderLoad checks that reloads lose no request on new connections, although a wrapper holds each
// connection for some time before it returns it.
func TestWrappersUnderLoad(t *testing.T) {
	const hold = 20 * time.Millisecond
	wrapWith(t, []caddy.ListenerWrapper{holding(hold)}, []caddy.ListenerWrapper{holding(hold)})
	plain, withTLS := fixture.Address(t), fixture.Address(t)
	start(t, nil)
	servers, keys := map[string]server{"one": fronted(plain, "one"), "two": frontedWithTLS(withTLS)}, keys(t)
	if err := load(servers, keys); err != nil {
		t.Fatal(err)
	}
	done, failures := make(chan struct{}), make(chan error, 100)
	var clients sync.WaitGroup
	var requests atomic.Int64
	for _, target := range slices.Repeat([]string{"http://" + plain, "https://" + withTLS}, 2) {
		clients.Go(func() {
			transport := &http.Transport{DisableKeepAlives: true,
				TLSClientConfig: &tls.Config{ServerName: "h", InsecureSkipVerify: true}}
			for {
				select {
				case <-done:
					return
				default:
				}
				response, err := (&http.Client{Transport: transport, Timeout: fixture.Patience}).Get(target)
				if err == nil {
					_, err = io.Copy(io.Discard, response.Body)
					err = errors.Join(err, response.Body.Close())
				}
				requests.Add(1)
				if err != nil {
					failures <- err
					return
				}
			}
		})
	}
	for i := 0; i < 1000 && (i < 20 || requests.Load() < 100); i++ {
		if err := load(servers, keys); err != nil {
			t.Error(err)
		}
	}
	close(done)
	clients.Wait()
	close(failures)
	for err := range failures {
		t.Errorf("a request fails: %v", err)
	}
	if requests.Load() < 100 {
		t.Errorf("there were only %d requests", requests.Load())
	}
}

// holding is a listener wrapper that holds each connection for some time, on a goroutine of its own.
type holding time.Duration

func (h holding) WrapListener(l net.Listener) net.Listener {
	held := &heldListener{Listener: l, ready: make(chan net.Conn), closed: make(chan struct{})}
	go func() {
		defer close(held.closed)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(time.Duration(h), func() {
				select {
				case held.ready <- opaque{conn}:
				case <-held.closed:
					_ = conn.Close()
				}
			})
		}
	}()
	return held
}

type heldListener struct {
	net.Listener
	ready  chan net.Conn
	closed chan struct{}
}

func (h *heldListener) Accept() (net.Conn, error) {
	select {
	case conn := <-h.ready:
		return conn, nil
	case <-h.closed:
		return nil, io.EOF
	}
}
