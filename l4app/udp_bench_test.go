//go:build linux

package l4app

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"golang.org/x/net/ipv4"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// BenchmarkDatagrams sends datagrams through a port to an endpoint that echoes them. One operation is a window of
// datagrams. The reported allocations are addresses in this test and its endpoint, two for each datagram that they
// read.
func BenchmarkDatagrams(b *testing.B) {
	for _, size := range []int{64, 1400} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			const window = 32
			conn := ipv4.NewPacketConn(benchmarkPort(b))
			out, in := make([]ipv4.Message, window), make([]ipv4.Message, window)
			for i := range window {
				out[i].Buffers, in[i].Buffers = [][]byte{make([]byte, size)}, [][]byte{make([]byte, size)}
			}
			b.SetBytes(int64(window * size))
			b.ReportAllocs()
			for b.Loop() {
				roundTrip(b, conn, out, in)
			}
			b.ReportMetric(float64(b.N*window)/b.Elapsed().Seconds(), "datagrams/s")
		})
	}
}

func benchmarkPort(b *testing.B) net.PacketConn {
	b.Helper()
	tables := newTables()
	ports := New(zap.NewNop(), tables)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: context.Background()})
	b.Cleanup(func() {
		ports.Close()
		cancel()
	})
	r := route(ir.UDP, freePort(b), "a")
	tables.Endpoints.Set(r.Backends[0].Backend.ID, []ir.Endpoint{{Address: echoBackend(b)}})
	if refused := ports.Update(ctx, one(r)); len(refused) > 0 {
		b.Fatalf("refused: %v", refused)
	}
	conn, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", r.Port))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { conn.Close() })
	return conn.(*net.UDPConn)
}

func roundTrip(b *testing.B, conn *ipv4.PacketConn, out, in []ipv4.Message) {
	b.Helper()
	for sent := 0; sent < len(out); {
		n, err := conn.WriteBatch(out[sent:], 0)
		if err != nil {
			b.Fatal(err)
		}
		sent += n
	}
	for heard := 0; heard < len(in); {
		n, err := conn.ReadBatch(in[heard:], 0)
		if err != nil {
			b.Fatal(err)
		}
		heard += n
	}
}
