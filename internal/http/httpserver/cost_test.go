package httpserver_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/httpserver"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// loop is a connection that delivers the same request repeatedly and discards the responses. It makes no system calls.
type loop struct {
	net.Conn
	request []byte
	left    int
	written int
}

func (l *loop) Read(b []byte) (int, error) {
	if l.left == 0 {
		return 0, io.EOF
	}
	l.left--
	return copy(b, l.request), nil
}

func (l *loop) Write(b []byte) (int, error)    { l.written += len(b); return len(b), nil }
func (*loop) Close() error                     { return nil }
func (*loop) SetDeadline(time.Time) error      { return nil }
func (*loop) SetReadDeadline(time.Time) error  { return nil }
func (*loop) SetWriteDeadline(time.Time) error { return nil }

func trivial(w message.Writer, _ *message.Request) {
	_ = w.Head(&trivialAnswer)
	_, _ = w.Write(trivialBody)
}

var (
	trivialBody   = []byte("hello")
	trivialAnswer = message.Response{Status: 200, Length: 5,
		Fields: message.Fields{message.ContentType.Field("text/plain")}}
)

func BenchmarkServe(b *testing.B) {
	b.ReportAllocs()
	l := &loop{request: []byte(get("/")), left: b.N}
	httpserver.New(l, new(message.Conn), &host{handle: trivial, limits: patient()}).Serve()
	if l.written < 80*b.N {
		b.Fatal(l.written)
	}
}

// TestAllocations checks that a GET request needs one allocation: the string of its head.
func TestAllocations(t *testing.T) {
	most := int64(1)
	if pools.Checking {
		most = 2 // With the race detector, a sync.Pool drops some values.
	}
	result := testing.Benchmark(BenchmarkServe)
	if n := result.AllocsPerOp(); n > most {
		t.Errorf("%d allocations per request", n)
	}
}

func BenchmarkLoopback(b *testing.B) {
	options := patient()
	s := serve(b, trivial, func(h *host) { h.limits = options })
	b.Run("ours", func(b *testing.B) { load(b, s.address) })
	listener := fixture.Listen(b)
	theirs := &http.Server{ReadHeaderTimeout: patience,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"text/plain"}
			_, _ = w.Write(trivialBody)
		})}
	go func() { _ = theirs.Serve(listener) }()
	b.Cleanup(func() { theirs.Close() })
	b.Run("net-http", func(b *testing.B) { load(b, listener.Addr().String()) })
}

// load requests short responses on one connection for each processor.
func load(b *testing.B, address string) {
	request := []byte(get("/"))
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		c := dial(b, address)
		answer := make([]byte, 512)
		for p.Next() {
			if _, err := c.Write(request); err != nil {
				b.Error(err)
				return
			}
			if _, err := c.Read(answer); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// TestPoisonedBuffer checks that the strings that a handler keeps do not change with later requests.
func TestPoisonedBuffer(t *testing.T) {
	var kept []string
	s := serve(t, func(w message.Writer, r *message.Request) {
		kept = append(kept, r.Method, r.Host, r.Path, r.Query, r.Target, r.EscapedPath)
		for _, f := range r.Fields {
			kept = append(kept, f.Name, f.Value)
		}
		answer(w, 200, "")
	}, nil)
	c := dial(t, s.address)
	for i := range 100 {
		c.send(crlf(fmt.Sprintf("GET /%d?q%d HTTP/1.1", i, i), "Host: a"+fmt.Sprint(i), "A: "+fmt.Sprint(i)))
		c.expect("HTTP/1.1 200 OK\r\n")
		for line := ""; line != "\r\n"; {
			var err error
			if line, err = c.reader.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 100 {
		path := fmt.Sprintf("/%d", i)
		want := []string{"GET", fmt.Sprintf("a%d", i), path, fmt.Sprintf("q%d", i), fmt.Sprintf("%s?q%d", path, i),
			path, "A", fmt.Sprint(i)}
		if got := kept[8*i : 8*i+8]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// mostIdle is the maximum memory of an idle connection in bytes.
const mostIdle = 12 << 10

func TestIdleMemory(t *testing.T) {
	const connections = 500
	s := serve(t, echo, nil)
	clients := make([]net.Conn, connections)
	answer := make([]byte, 512)
	before := inUse()
	for i := range clients {
		nc, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		clients[i] = nc
		_, _ = io.WriteString(nc, get("/"))
		if _, err := nc.Read(answer); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Holds(t, "all are idle", func() bool { _, idle := s.Connections(); return idle == connections })
	each := (inUse() - before) / connections
	t.Logf("%d bytes each, with the client's half", each)
	if each > mostIdle {
		t.Errorf("an idle connection takes %d bytes", each)
	}
}

// inUse returns the memory in use by the heap and stacks, in bytes.
func inUse() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestTLS checks the behavior that is different over TLS: waiting, early responses, and watching the connection.
func TestTLS(t *testing.T) {
	certificate := fixture.Certificate(t, "a").Pair()
	gone := make(chan error, 1)
	s := serve(t, func(w message.Writer, r *message.Request) {
		switch r.Path {
		case "/watch":
			answerHead := message.Response{Status: 200, Length: -1}
			_ = w.Head(&answerHead)
			_ = w.Flush()
			<-r.Context().Done()
			gone <- r.Context().Err()
		case "/early":
			answer(w, 413, "early")
		default:
			echo(w, r)
		}
	}, nil)
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	address := accept(t, func(nc net.Conn) {
		secure := tls.Server(nc, config)
		if secure.Handshake() != nil {
			nc.Close()
			return
		}
		s.Serve(secure, connOf(nc))
	})
	connect := func() *client {
		nc, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		_ = nc.SetDeadline(time.Now().Add(patience))
		return &client{t, nc, bufio.NewReader(nc)}
	}
	long := strings.Repeat("x", 300_000)
	c := connect()
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.WriteString(c.Conn, get("/1")+crlf("POST /2 HTTP/1.1", "Host: a", "Content-Length: 300000",
			"A: "+strings.Repeat("b", 5000))+long+last("/3"))
	})
	if got, want := undated(c.rest()), ok("GET /1")+ok("POST /2 "+long)+ok("GET /3", closes); got != want {
		t.Errorf("%.300q", got)
	}
	wg.Wait()
	c = connect()
	wg.Go(func() {
		_, _ = io.WriteString(c.Conn, crlf("POST /early HTTP/1.1", "Host: a", "Content-Length: 3000000"))
		_, _ = c.Conn.Write(bytes.Repeat([]byte("x"), 3_000_000))
	})
	if got := undated(c.rest()); got != crlf("HTTP/1.1 413 Request Entity Too Large", "Content-Length: 5",
		closes)+"early" {
		t.Errorf("early: %q", got)
	}
	wg.Wait()
	c = connect()
	c.send(get("/watch"))
	c.expect("HTTP/1.1 200 OK\r\n")
	c.Close()
	select {
	case err := <-gone:
		if err == nil {
			t.Error("the context has not ended")
		}
	case <-time.After(patience):
		t.Error("nobody saw that the client has gone")
	}
}
