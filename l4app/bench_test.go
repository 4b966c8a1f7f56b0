package l4app

import (
	"io"
	"net"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// BenchmarkBulk measures forwarding bytes in each direction, including client and endpoint. "direct" has no port in
// between, and "copy" is a minimal proxy in Go.
func BenchmarkBulk(b *testing.B) {
	for name, way := range ways(b) {
		for _, direction := range []string{"in", "out"} {
			b.Run(name+"/"+direction, func(b *testing.B) { bulk(b, way, direction) })
		}
	}
}

// block is the number of bytes per write.
const block = 128 << 10

func bulk(b *testing.B, address, direction string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, direction[:1]); err != nil {
		b.Fatal(err)
	}
	buffer := make([]byte, block)
	b.SetBytes(block)
	for b.Loop() {
		if direction == "in" {
			_, err = conn.Write(buffer)
		} else {
			_, err = io.ReadFull(conn, buffer)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConnect measures a connection on which one byte is sent and returned.
func BenchmarkConnect(b *testing.B) {
	for name, way := range ways(b) {
		b.Run(name, func(b *testing.B) {
			one := make([]byte, 1)
			b.ReportAllocs()
			for b.Loop() {
				conn, err := net.Dial("tcp", way)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.WriteString(conn, "p"); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, one); err != nil {
					b.Fatal(err)
				}
				// Close with a reset: otherwise the local ports would run out.
				_ = conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		})
	}
}

// ways returns the addresses at which a client can reach an endpoint, by name.
func ways(b *testing.B) map[string]string {
	w := newWorld(b)
	r := route(ir.TCP, freePort(b), "a")
	direct := backend(b, willing)
	w.set(r, direct)
	copied := backend(b, func(client *net.TCPConn) {
		conn, err := net.Dial("tcp", direct)
		if err != nil {
			return
		}
		defer conn.Close()
		go func() {
			_, _ = io.Copy(client, conn)
			_ = client.CloseWrite()
		}()
		_, _ = io.Copy(conn, client)
		_ = conn.(*net.TCPConn).CloseWrite()
	})
	return map[string]string{"direct": direct, "copy": copied, "port": net.JoinHostPort("127.0.0.1", itoa(int(r.Port)))}
}

// willing is an endpoint whose behavior depends on the first byte: it reads everything, sends data, or echoes the byte.
func willing(conn *net.TCPConn) {
	first := make([]byte, 1)
	if _, err := io.ReadFull(conn, first); err != nil {
		return
	}
	switch first[0] {
	case 'i':
		_, _ = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, block))
	case 'o':
		_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, zeros{}, make([]byte, block))
	default:
		_, _ = conn.Write(first)
		_, _ = conn.Read(first)
	}
}
