package netconn_test

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const (
	line   = "PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n"
	binary = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\xc6\x33\x64\x01\x12\x34\x01\xbb"
)

// sent returns a connection whose client has sent text, and is waiting for an answer.
func sent(t *testing.T, text string) (client, accepted *net.TCPConn) {
	t.Helper()
	client, accepted = pair(t)
	if _, err := io.WriteString(client, text); err != nil {
		t.Fatal(err)
	}
	return client, accepted
}

// TestProxied checks the addresses of a connection, and that each of the methods that wait for the header reads it.
func TestProxied(t *testing.T) {
	for name, c := range map[string]struct{ header, from, to string }{
		"version 1":       {line, "203.0.113.7:4660", "198.51.100.1:443"},
		"version 2":       {binary, "203.0.113.7:4660", "198.51.100.1:443"},
		"unknown":         {"PROXY UNKNOWN\r\n", "", ""},
		"local":           {string(proxyproto.SIGV2) + "\x20\x00\x00\x00", "", ""},
		"no family":       {string(proxyproto.SIGV2) + "\x21\x00\x00\x03\x04\x00\x00", "", ""},
		"an UDP address":  {strings.Replace(binary, "\x21\x11", "\x21\x12", 1), "", ""},
		"a Unix socket":   {string(proxyproto.SIGV2) + "\x21\x31\x00\xd8" + strings.Repeat("/", 216), "", ""},
		"with a long TLV": {string(proxyproto.SIGV2) + "\x20\x00\x0f\xff" + strings.Repeat("x", 4095), "", ""},
	} {
		for method, use := range map[string]func(net.Conn){
			"ReadHeader": func(conn net.Conn) { _ = conn.(*netconn.Proxied).ReadHeader() },
			"Read":       func(conn net.Conn) { _, _ = conn.Read(nil) },
			"Write":      func(conn net.Conn) { _, _ = conn.Write([]byte("written")) },
			"addresses":  func(net.Conn) {},
		} {
			t.Run(name+"/"+method, func(t *testing.T) {
				client, accepted := sent(t, c.header+"rest")
				if err := client.CloseWrite(); err != nil {
					t.Fatal(err)
				}
				conn := netconn.NewProxied(accepted, fixture.Patience)
				use(conn)
				from, to := c.from, c.to
				if from == "" {
					from, to = accepted.RemoteAddr().String(), accepted.LocalAddr().String()
				}
				if conn.RemoteAddr().String() != from || conn.LocalAddr().String() != to {
					t.Errorf("from %v to %v, want from %s to %s", conn.RemoteAddr(), conn.LocalAddr(), from, to)
				}
				if rest, err := io.ReadAll(conn); err != nil || string(rest) != "rest" {
					t.Errorf("after the header comes %q, %v", rest, err)
				}
			})
		}
	}
}

// TestProxiedWithoutHeader checks that nothing is read from or written to a connection without a valid header.
func TestProxiedWithoutHeader(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		closes bool
		want   error
	}{
		"one byte":         {"G", false, proxyproto.ErrNoProxyProtocol},
		"another protocol": {"GET / HTTP/1.1\r\n\r\n", false, proxyproto.ErrNoProxyProtocol},
		"no end":           {"PROXY TCP4 " + strings.Repeat("1", 200), false, proxyproto.ErrVersion1HeaderTooLong},
		"too long":         {string(proxyproto.SIGV2) + "\x21\x11\xff\xff", false, proxyproto.ErrInvalidLength},
		"silence":          {"", false, os.ErrDeadlineExceeded},
		"half, silence":    {line[:20], false, os.ErrDeadlineExceeded},
		"end":              {"", true, io.EOF},
		"half, end":        {line[:20], true, io.ErrUnexpectedEOF},
		"no address, end":  {binary[:16], true, io.ErrUnexpectedEOF},
		"no family, end":   {string(proxyproto.SIGV2) + "\x21\x00\x00\x03", true, io.ErrUnexpectedEOF},
		"POST":             {"POST / HTTP/1.1", false, proxyproto.ErrNoProxyProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			client, accepted := sent(t, c.text)
			if c.closes {
				if err := client.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			wait := fixture.Patience
			if errors.Is(c.want, os.ErrDeadlineExceeded) {
				wait = 50 * time.Millisecond
			}
			conn := netconn.NewProxied(accepted, wait)
			var failures []error
			conn.OnFailure(func(err error) { failures = append(failures, err) })
			if _, err := conn.Write([]byte("answer")); !errors.Is(err, c.want) {
				t.Errorf("writing: %v, want %v", err, c.want)
			}
			if n, err := conn.Read(make([]byte, 100)); n > 0 || !errors.Is(err, c.want) {
				t.Errorf("reading: %d bytes, %v, want %v", n, err, c.want)
			}
			if conn.RemoteAddr() != accepted.RemoteAddr() {
				t.Errorf("the client is %v", conn.RemoteAddr())
			}
			// A connection that ends before any data is a check of the port.
			if ended := errors.Is(c.want, io.EOF); ended && len(failures) > 0 ||
				!ended && (len(failures) != 1 || !errors.Is(failures[0], c.want)) {
				t.Errorf("the reported failures are %v", failures)
			}
			_ = conn.Close()
			if got, _ := io.ReadAll(client); len(got) > 0 {
				t.Errorf("the client gets %q", got)
			}
		})
	}
}

// deadlines records the read deadlines of a connection.
type deadlines struct {
	net.Conn
	all []time.Time
}

func (d *deadlines) SetReadDeadline(deadline time.Time) error {
	d.all = append(d.all, deadline)
	return d.Conn.SetReadDeadline(deadline)
}

// TestProxiedDeadline checks that the timeout applies to the header only.
func TestProxiedDeadline(t *testing.T) {
	_, accepted := sent(t, line)
	conn := &deadlines{Conn: accepted}
	begin := time.Now()
	if err := netconn.NewProxied(conn, fixture.Patience).ReadHeader(); err != nil {
		t.Fatal(err)
	}
	if len(conn.all) != 2 || conn.all[0].Before(begin.Add(fixture.Patience)) || !conn.all[1].IsZero() {
		t.Errorf("the deadlines are %v", conn.all)
	}
}

// TestStrip checks that the socket is found below all layers, and that the bytes ahead keep their order.
func TestStrip(t *testing.T) {
	_, accepted := pair(t)
	buffer := pools.NewBuffers("netconn: test", 256).Get()
	conn := netconn.NewProxied(netconn.ReplayPooled(accepted, &buffer, copy(buffer.Bytes(), line+"third")),
		fixture.Patience)
	if err := conn.ReadHeader(); err != nil {
		t.Fatal(err)
	}
	below, ahead := netconn.Strip(netconn.Replay(conn, []byte("second ")), []byte("first "))
	if below != net.Conn(accepted) || string(ahead) != "first second third" {
		t.Errorf("below is a %T, and %q was read before", below, ahead)
	}
	if conn.RemoteAddr().String() != "203.0.113.7:4660" {
		t.Errorf("the client is %v", conn.RemoteAddr())
	}
}
