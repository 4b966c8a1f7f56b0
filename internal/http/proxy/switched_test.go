package proxy_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const (
	upgrade = "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: " +
		"websocket\r\nSec-WebSocket-Key: x\r\n\r\n"
	switched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
		"websocket\r\nSec-WebSocket-Accept: y\r\n\r\n"
)

// talking starts an endpoint that switches protocols, sends a hello at once, and then passes the connection to talk.
func talking(t *testing.T, secure bool, talk func(conn net.Conn, reader *bufio.Reader)) *endpoint {
	t.Helper()
	listener := fixture.Listen(t)
	if secure {
		listener = tls.NewListener(listener,
			&tls.Config{Certificates: []tls.Certificate{fixture.Certificate(t, "a").Pair()}})
	}
	fixture.Serve(listener, func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		r, err := http.ReadRequest(reader)
		if err != nil || r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
			t.Errorf("the endpoint got %v, %v", r, err)
			return
		}
		_, _ = io.WriteString(conn, switched+"hello\n")
		talk(conn, reader)
	})
	return &endpoint{Listener: listener}
}

// socket opens a WebSocket and reads the hello.
func socket(t *testing.T, address string) (*net.TCPConn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, _ = io.WriteString(conn, upgrade)
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols ||
		response.Header.Get("Upgrade") != "websocket" ||
		response.Header.Get("Sec-Websocket-Accept") != "y" || response.Header.Get("Connection") != "Upgrade" {
		t.Fatalf("got %v, %v", response, err)
	}
	t.Cleanup(func() { response.Body.Close() })
	if line, err := reader.ReadString('\n'); line != "hello\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	return conn.(*net.TCPConn), reader
}

func TestWebSockets(t *testing.T) { onFronts(t, webSockets) }

func webSockets(t *testing.T, ours bool) {
	for _, protocol := range protocols {
		ends := make(chan error, 10)
		e := talking(t, protocol == ir.HTTPS, func(conn net.Conn, reader *bufio.Reader) {
			_, err := io.Copy(conn, reader)
			ends <- err
		})
		s := settingsOf(ir.Proxy{Forwarding: ir.Forwarding{Protocol: protocol}})
		s.Read = 2 * time.Second
		f := inFront(t, s, of(e))
		server, _ := f.listen(t, ours)
		t.Run(string(protocol)+", one talks", func(t *testing.T) {
			conn, reader := socket(t, server.Listener.Addr().String())
			for i := range 8 {
				fmt.Fprintln(conn, i)
				if line, err := reader.ReadString('\n'); line != fmt.Sprintln(i) {
					t.Fatalf("got %q, %v", line, err)
				}
			}
			_ = conn.Close()
			_ = fixture.Receive(t, "the end at the endpoint", ends)
			if err := fixture.Receive(t, "the end", f.errs); err != nil {
				t.Error(err)
			}
		})
		t.Run(string(protocol)+", a lot, and one end first", func(t *testing.T) {
			conn, reader := socket(t, server.Listener.Addr().String())
			sent := pattern(4 << 20)
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.CloseWrite()
			}()
			got, err := io.ReadAll(reader)
			if err != nil || string(got) != string(sent) {
				t.Errorf("%d of %d bytes come back, %v", len(got), len(sent), err)
			}
			_ = fixture.Receive(t, "the end at the endpoint", ends)
			_ = fixture.Receive(t, "the end", f.errs)
		})
		t.Run(string(protocol)+", silence", func(t *testing.T) {
			begin := time.Now()
			_, reader := socket(t, server.Listener.Addr().String())
			if rest, err := io.ReadAll(reader); len(rest) > 0 || time.Since(begin) < s.Read ||
				time.Since(begin) > 10*s.Read {
				t.Errorf("%q, %v after %v", rest, err, time.Since(begin))
			}
			_ = fixture.Receive(t, "the end at the endpoint", ends)
			_ = fixture.Receive(t, "the end", f.errs)
		})
	}
}

// TestUnrequestedSwitch checks that a 101 response to a request without an upgrade is treated as an invalid
// response.
func TestUnrequestedSwitch(t *testing.T) { onFronts(t, unrequestedSwitch) }

func unrequestedSwitch(t *testing.T, ours bool) {
	for name, c := range map[string]struct{ answer, request string }{
		"not asked":  {switched, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		"no Upgrade": {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", upgrade},
		"another":    {strings.ReplaceAll(switched, "websocket", "h2c"), upgrade},
		"asked for it": {strings.ReplaceAll(switched, "websocket", "h2c"),
			strings.ReplaceAll(upgrade, "websocket", "h2c")},
		"HTTP/1.0": {switched, strings.ReplaceAll(upgrade, "HTTP/1.1", "HTTP/1.0")},
	} {
		t.Run(name, func(t *testing.T) {
			server, _ := inFront(t, settings(), of(serve(t, respondWith(c.answer)))).listen(t, ours)
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, c.request)
			response, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if response.StatusCode != http.StatusBadGateway {
				t.Errorf("got %v", response)
			}
		})
	}
}

// TestARefusedUpgrade checks that an endpoint can refuse an upgrade and that both connections stay usable.
func TestARefusedUpgrade(t *testing.T) { onFronts(t, aRefusedUpgrade) }

func aRefusedUpgrade(t *testing.T, ours bool) {
	e := serve(t, respondWith("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"))
	server, _ := inFront(t, settings(), of(e)).listen(t, ours)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for range 2 {
		_, _ = io.WriteString(conn, upgrade)
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if response.Body.Close(); string(body) != "no" || response.StatusCode != http.StatusForbidden {
			t.Errorf("%d %q, %v", response.StatusCode, body, err)
		}
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}
