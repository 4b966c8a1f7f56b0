package netconn_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"testing/iotest"
	"time"

	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// pair returns both ends of a TCP connection.
func pair(t testing.TB) (client, accepted *net.TCPConn) {
	t.Helper()
	listener := fixture.Listen(t)
	dialed, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dialed.Close() })
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := dialed.SetDeadline(time.Now().Add(fixture.Patience)); err != nil {
		t.Fatal(err)
	}
	return dialed.(*net.TCPConn), conn.(*net.TCPConn)
}

// raw is a layer with the method Raw, like the connections of go-proxyproto.
type raw struct{ net.Conn }

func (r raw) Raw() net.Conn { return r.Conn }

// closed is a layer that hides the connection below.
type closed struct{ net.Conn }

// TestCloseWrite checks that the write side of a wrapped connection can be closed, and that data still arrives.
func TestCloseWrite(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"nothing":        func(c net.Conn) net.Conn { return c },
		"a layer":        func(c net.Conn) net.Conn { return raw{c} },
		"PROXY protocol": func(c net.Conn) net.Conn { return netconn.NewProxied(raw{c}, fixture.Patience) },
		"replayed":       func(c net.Conn) net.Conn { return netconn.Replay(raw{c}, []byte("before ")) },
	} {
		t.Run(name, func(t *testing.T) {
			client, accepted := pair(t)
			conn := wrap(accepted)
			if err := netconn.CloseWrite(conn); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
				t.Errorf("the client reads %q, %v", rest, err)
			}
			if _, err := io.WriteString(client, "PROXY UNKNOWN\r\nmore"); err != nil {
				t.Errorf("the client can send no more: %v", err)
			}
			if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
				t.Errorf("what it sends does not come: %v", err)
			}
		})
	}
	_, accepted := pair(t)
	if err := netconn.CloseWrite(closed{accepted}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a connection without the method: %v", err)
	}
}

func TestFind(t *testing.T) {
	_, accepted := pair(t)
	secure := tls.Server(netconn.Replay(raw{accepted}, []byte("before")), new(tls.Config))
	if found, ok := netconn.Find[*net.TCPConn](secure); !ok || found != accepted {
		t.Errorf("the socket is %v", found)
	}
	if found, ok := netconn.Find[*tls.Conn](secure); !ok || found != secure {
		t.Errorf("the outermost layer is %v", found)
	}
	if found, ok := netconn.Find[*net.UnixConn](secure); ok || found != nil {
		t.Errorf("there is a Unix socket: %v", found)
	}
	if found, ok := netconn.Find[*net.TCPConn](closed{accepted}); ok || found != nil {
		t.Errorf("below a layer without NetConn: %v", found)
	}
}

// TestReplay checks that the bytes ahead are read first, whatever the size of the reads.
func TestReplay(t *testing.T) {
	small := pools.NewBuffers("netconn: test", 16)
	for name, replay := range map[string]func(net.Conn) net.Conn{
		"slice": func(c net.Conn) net.Conn { return netconn.Replay(c, []byte("ahead ")) },
		"pooled": func(c net.Conn) net.Conn {
			buffer := small.Get()
			return netconn.ReplayPooled(c, &buffer, copy(buffer.Bytes(), "ahead "))
		},
	} {
		for _, one := range []bool{false, true} {
			client, accepted := pair(t)
			if _, err := io.WriteString(client, "rest"); err != nil {
				t.Fatal(err)
			}
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			var reader io.Reader = replay(accepted)
			if one {
				reader = iotest.OneByteReader(reader)
			}
			if got, err := io.ReadAll(reader); err != nil || string(got) != "ahead rest" {
				t.Errorf("%s, byte by byte %v: %q, %v", name, one, got, err)
			}
		}
	}
}

// TestReplayNothing checks that a connection without bytes ahead stays a TCP connection. The kernel can copy from it.
func TestReplayNothing(t *testing.T) {
	_, accepted := pair(t)
	if conn := netconn.Replay(accepted, nil); conn != net.Conn(accepted) {
		t.Errorf("it is a %T", conn)
	}
	buffer := pools.NewBuffers("netconn: test", 16).Get()
	if conn := netconn.ReplayPooled(accepted, &buffer, 0); conn != net.Conn(accepted) || buffer.Held() {
		t.Errorf("it is a %T, and the buffer is in use: %v", conn, buffer.Held())
	}
}

func TestAddrPort(t *testing.T) {
	want := netip.MustParseAddrPort("[2001:db8::1]:80")
	for _, c := range []struct {
		address net.Addr
		want    netip.AddrPort
	}{
		{net.TCPAddrFromAddrPort(want), want}, {net.UDPAddrFromAddrPort(want), want},
		{&net.UnixAddr{Name: "/run/socket"}, netip.AddrPort{}}, {nil, netip.AddrPort{}},
	} {
		if got := netconn.AddrPort(c.address); got != c.want {
			t.Errorf("%v: %v", c.address, got)
		}
	}
}
