package proxy_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/realip"
)

// nobody takes answers as net/http does, and keeps nothing of them.
type nobody struct{ header http.Header }

func (n *nobody) Header() http.Header         { return n.header }
func (n *nobody) WriteHeader(int)             {}
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }

// always is one endpoint that does well.
type always string

func (a always) Next() (string, bool) { return string(a), true }
func (always) Answered(time.Time)     {}
func (always) Listed() func() bool    { return func() bool { return true } }
func (always) Variable(string) string { return "" }
func (always) Done(bool)              {}

// BenchmarkForward sends short requests to an endpoint, and reads short answers.
func BenchmarkForward(b *testing.B) {
	p := proxy.NewPool()
	defer p.Close()
	endpoint := always(raw(b, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Sat, 21 Nov 2026 11:00:00 GMT\r\nContent-Length: 3\r\n\r\nok\n"))
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://shop.example/a?b=c", nil)
	if err != nil {
		b.Fatal(err)
	}
	s, client := settings(), realip.Client{IP: "192.0.2.1", Host: "shop.example", Port: "80", Proto: "http"}
	s.Read, s.Write = time.Minute, time.Minute
	w := &nobody{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		clear(w.header)
		x := proxy.NewExchange(s, endpoint)
		x.Tell(r, &client, "id", client.IP)
		if err := p.Forward(w, r, x); err != nil {
			b.Fatal(err)
		}
		x.Close()
	}
}

// raw is an endpoint that answers each head of a request with the same bytes. It costs as little as possible.
func raw(b *testing.B, answer string) (address string) {
	b.Helper()
	listener := fixture.Listen(b)
	fixture.Serve(listener, func(conn net.Conn) { repeat(conn, answer) })
	return listener.Addr().String()
}

func repeat(conn net.Conn, answer string) {
	reader := bufio.NewReader(conn)
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > len("\r\n") {
			continue
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
