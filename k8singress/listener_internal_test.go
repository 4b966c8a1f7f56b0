package k8singress

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestOneDirectionIsClosed checks that the write side of a wrapped connection can be closed. net/http needs this before
// it closes a connection on which the client is still sending.
func TestOneDirectionIsClosed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"nothing":        func(c net.Conn) net.Conn { return c },
		"PROXY protocol": func(c net.Conn) net.Conn { return proxied{proxyproto.NewConn(c)} },
	} {
		t.Run(name, func(t *testing.T) {
			client, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			accepted, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer accepted.Close()
			if err := client.SetDeadline(time.Now().Add(fixture.Patience)); err != nil {
				t.Fatal(err)
			}
			half, ok := wrap(accepted).(interface{ CloseWrite() error })
			if !ok {
				t.Fatal("nobody can close one direction")
			}
			if err := half.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(client); err != nil || len(rest) > 0 {
				t.Errorf("the client reads %q, %v", rest, err)
			}
			if _, err := io.WriteString(client, "more"); err != nil {
				t.Errorf("the client can send no more: %v", err)
			}
			if _, err := io.ReadFull(accepted, make([]byte, 4)); err != nil {
				t.Errorf("what it sends does not come: %v", err)
			}
		})
	}
}
