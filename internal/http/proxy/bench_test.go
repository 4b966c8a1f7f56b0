package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// discardWriter is a client that accepts responses and discards them.
type discardWriter struct{ message.Writer }

func (discardWriter) Head(*message.Response) error             { return nil }
func (discardWriter) Write(b []byte) (int, error)              { return len(b), nil }
func (discardWriter) ReadFrom(source io.Reader) (int64, error) { return io.Copy(io.Discard, source) }
func (discardWriter) Flush() error                             { return nil }
func (discardWriter) Trailer(message.Fields) error             { return nil }
func (discardWriter) Interim(int, message.Fields) error        { return nil }

// BenchmarkForward sends short requests to an endpoint and reads short responses.
func BenchmarkForward(b *testing.B) {
	for name, answer := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sat, 21 Nov 2026 11:00:00 " +
			"GMT\r\nContent-Length: 3\r\n\r\nok\n",
		"chunked": "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: " +
			"chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n",
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, answer) })
	}
}

func benchmark(b *testing.B, answer string) {
	p, s := pool(b), settings()
	s.Read, s.Write = time.Minute, time.Minute
	backend := of(&endpoint{Listener: raw(b, answer)})
	r := message.Request{
		Method: http.MethodGet, Host: "shop.example", Target: "/a?b=c", Path: "/a", EscapedPath: "/a", Query: "b=c",
		Major: 1, Minor: 1,
		Fields: message.Fields{message.UserAgent.Field("bench"), message.Accept.Field("*/*"),
			message.XRequestID.Field("id")},
		Conn: &message.Conn{RemoteIP: "192.0.2.1", LocalPort: "80"},
	}
	clients, global, route := realip.New(ir.Clients{}), &ir.Global{}, &exchange.Route{Path: "/"}
	x := &exchange.Exchange{}
	b.ReportAllocs()
	for b.Loop() {
		*x = exchange.Exchange{Request: &r, Route: route, Backend: backend, Clients: clients, Global: global,
			Writer: discardWriter{}}
		if err := p.Forward(x, s, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// raw starts an endpoint that responds to each request head with the same bytes. It uses as little time as possible.
func raw(b *testing.B, answer string) net.Listener {
	b.Helper()
	listener := fixture.Listen(b)
	fixture.Serve(listener, func(conn net.Conn) { repeat(conn, answer) })
	return listener
}

func repeat(conn net.Conn, answer string) {
	reader, bytes := bufio.NewReader(conn), []byte(answer)
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > len("\r\n") {
			continue
		}
		if _, err := conn.Write(bytes); err != nil {
			return
		}
	}
}
