package k8singress

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/tls/trust"
	"github.com/k8singress/k8singress/internal/upstream/endpoints"
	"github.com/k8singress/k8singress/l4app"
)

// BenchmarkAccept measures reading a ClientHello from a connection, as the server does: without our listener, with it,
// and with ten thousand hosts with TLS passthrough.
func BenchmarkAccept(b *testing.B) {
	said := firstWords(b)
	none, many := live.NewTable(endpoints.NewTable(), trust.NewStore()),
		live.NewTable(endpoints.NewTable(), trust.NewStore())
	hosts := map[string]*document.Host{}
	for i := range 10_000 {
		hosts[fmt.Sprintf("host-%d.example", i)] = &document.Host{Passthrough: "ns/web/443"}
	}
	many.Update(hosts)
	for name, table := range map[string]*live.Table{"without": nil, "no host": none, "10000 hosts": many} {
		b.Run(name, func(b *testing.B) {
			l, divert := talking{said}, func(conn net.Conn, _ time.Time) (net.Conn, error) { return conn, nil }
			if table != nil {
				divert = newPassing(table, live.ServerPorts, func() *l4app.Passage {
					return l4app.New(zap.NewNop(), l4app.Tables{Endpoints: endpoints.NewTable()}).Passage(l.Addr(),
						table.StreamPolicy, zap.NewNop())
				}, zap.NewNop()).divert
			}
			buffer := make([]byte, len(said))
			b.ReportAllocs()
			for b.Loop() {
				conn, err := l.Accept()
				if err != nil {
					b.Fatal(err)
				}
				until := time.Now().Add(time.Minute)
				if err := conn.SetDeadline(until); err != nil {
					b.Fatal(err)
				}
				if conn, err = divert(conn, until); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(conn, buffer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// firstWords returns the ClientHello for a host without TLS passthrough.
func firstWords(b *testing.B) []byte {
	b.Helper()
	here, there := net.Pipe()
	defer here.Close()
	// The handshake ends when the pipe is closed.
	go func() { _ = tls.Client(there, &tls.Config{ServerName: "shop.example"}).Handshake() }()
	buffer := make([]byte, helloSize)
	n, err := here.Read(buffer)
	if err != nil {
		b.Fatal(err)
	}
	return buffer[:n]
}

// talking is a listener whose clients send something and nothing else.
type talking struct{ said []byte }

func (l talking) Accept() (net.Conn, error) { return &talker{said: l.said}, nil }
func (talking) Close() error                { return nil }
func (talking) Addr() net.Addr              { return &net.TCPAddr{} }

type talker struct {
	net.Conn
	said []byte
}

func (c *talker) Read(b []byte) (int, error) {
	n := copy(b, c.said)
	if c.said = c.said[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (*talker) RemoteAddr() net.Addr            { return &net.TCPAddr{} }
func (*talker) SetDeadline(time.Time) error     { return nil }
func (*talker) SetReadDeadline(time.Time) error { return nil }
