package l4app

import (
	"bytes"
	"crypto/rand"
	"io"
	"net"
	"testing"

	"github.com/mholt/caddy-l4/layer4"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/process/netconn"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// pair returns the two ends of a TCP connection.
func pair(t *testing.T) (a, b *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = conn.Close(), accepted.Close() })
	return conn.(*net.TCPConn), accepted.(*net.TCPConn)
}

// TestBytesAreMovedInTheKernel checks that splice moves all bytes without copying them through this process.
func TestBytesAreMovedInTheKernel(t *testing.T) {
	client, from := pair(t)
	to, backend := pair(t)
	sent := make([]byte, 8<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = client.Write(sent)
		_ = client.CloseWrite()
	}()
	moved, done := 0, make(chan error, 1)
	go func() {
		done <- splice(to, from, func(n int) { moved += n })
		_ = to.CloseWrite()
	}()
	got, err := io.ReadAll(backend)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("got %d of %d bytes, or others; %v", len(got), len(sent), err)
	}
	if err := fixture.Receive(t, "the end of moving", done); err != nil || moved != len(sent) {
		t.Errorf("%d bytes were moved, %v", moved, err)
	}
}

// TestClientIsASocket checks that the client's bytes are read and written on its socket directly, even after a PROXY
// protocol header, and that bytes received with the header are not lost.
func TestClientIsASocket(t *testing.T) {
	for text, ahead := range map[string]string{
		"": "", "PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\n": "",
		"PROXY TCP4 192.0.2.1 192.0.2.2 1111 2222\r\nmore": "more",
	} {
		client, accepted := pair(t)
		cx := layer4.WrapConnection(accepted, nil, zap.NewNop())
		if text != "" {
			send(t, client, text)
			if err := client.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			conn := netconn.NewProxied(accepted, fixture.Patience)
			if err := conn.ReadHeader(); err != nil {
				t.Fatal(err)
			}
			cx = cx.Wrap(conn)
		}
		side, rest, err := clientOf(cx)
		if err != nil || side.Conn != net.Conn(accepted) || side.socket != net.Conn(accepted) ||
			string(rest) != ahead {
			t.Errorf("after %q: %T, %T, %q, %v", text, side.Conn, side.socket, rest, err)
		}
	}
}
