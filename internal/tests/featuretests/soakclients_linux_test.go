package featuretests

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// honest starts clients whose requests must all succeed.
func (s *soak) honest() {
	s.keeps("honest: HTTP/1.1, kept", false, 4)
	s.keeps("honest: HTTPS, kept", true, 2)
	s.twos("honest: HTTP/2, kept", 2)
	s.renews("honest: HTTP/1.1, new", false)
	s.renews("honest: HTTPS, new", true)
	for _, secure := range []bool{false, true} {
		s.repeats("honest: each answer is that of its own request", s.ownAnswers(secure, wanting))
	}
	body := strings.Repeat("body of a request ", 10_000)
	s.repeats("honest: POST of 180 kB", s.alone(func(l *line) error {
		_, err := fmt.Fprintf(l, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n%s", steady, len(body), body)
		return errors.Join(err, l.gets(body))
	}))
	s.repeats("honest: 1 MiB, read slowly", s.alone(func(l *line) error {
		_ = l.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
		if _, err := fmt.Fprintf(l, "GET /large HTTP/1.1\r\nHost: %s\r\n\r\n", steady); err != nil {
			return err
		}
		s.pause(100 * time.Millisecond)
		return l.gets(string(make([]byte, largeAnswer)))
	}))
	socket := s.socket("/echo")
	s.repeats("honest: a WebSocket", func() error {
		if err := socket.SetDeadline(time.Now().Add(deadline)); err != nil {
			return err
		}
		if _, err := io.WriteString(socket.Conn, "hello\n"); err != nil {
			return err
		}
		_, err := socket.ReadString('\n')
		return err
	})
}

// alone returns a function that runs do once on a new connection.
func (s *soak) alone(do func(*line) error) func() error {
	return func() error {
		l, err := s.line(false)
		if err != nil {
			return err
		}
		if err := l.SetDeadline(time.Now().Add(deadline)); err != nil {
			return err
		}
		return errors.Join(do(l), l.Close())
	}
}

// ownAnswers sends requests for a path that no other client uses, some at the same time, on one connection after the
// other.
func (s *soak) ownAnswers(secure bool, host string) func() error {
	return func() error {
		l, err := s.line(secure)
		if err != nil {
			return err
		}
		defer l.Close()
		if err := l.SetDeadline(time.Now().Add(deadline)); err != nil {
			return err
		}
		for range 5 {
			text, paths := "", make([]string, 1+rand.IntN(4))
			for i := range paths {
				paths[i] = fmt.Sprintf("/%x", rand.Uint64())
				text += fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", paths[i], host)
			}
			if _, err := io.WriteString(l.Conn, text); err != nil {
				return err
			}
			for _, path := range paths {
				if err := l.gets(path); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// gets reads a response, and returns an error unless it has the wanted body.
func (l *line) gets(want string) error {
	response, err := http.ReadResponse(l.Reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("status %s", response.Status)
	case string(body) != want:
		return fmt.Errorf("%d bytes, %.50q, are the answer to another request than %.50q", len(body), body, want)
	}
	return nil
}

// bothers repeats do with the given number of clients, with a pause that leaves processor time to others. The results
// do not matter, but do must end.
func (s *soak) bothers(kind string, clients int, do func()) {
	count := new(atomic.Int64)
	s.careless.Store(kind, count)
	for range clients {
		s.running.Go(func() {
			for s.ctx.Err() == nil {
				do()
				count.Add(1)
				s.pause(50 * time.Millisecond)
			}
		})
	}
}

// with returns a function that connects and calls do. It resets the connection if it has not ended by itself.
func (s *soak) with(address string, do func(*net.TCPConn)) func() {
	return func() {
		conn, err := reach(s.ctx, address)
		if err != nil {
			s.pause(10 * time.Millisecond)
			return
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
		do(conn)
		_ = conn.SetLinger(0)
		_ = conn.Close()
	}
}

const beginOfPost = "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 900000\r\n\r\n"

// hostile starts the hostile clients.
func (s *soak) hostile() {
	s.crowds()
	s.bothers("hostile: a body that stalls", 10, s.with(s.http, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, beginOfPost+strings.Repeat("x", 100_000))
		s.pause(3 * time.Second)
	}))
	whole := beginOfPost + strings.Repeat("x", 1000)
	s.bothers("hostile: gone at any byte", 4,
		s.with(s.http, func(conn *net.TCPConn) { _, _ = io.WriteString(conn, whole[:rand.IntN(len(whole))]) }))
	s.bothers("hostile: gone before the answer", 2,
		s.with(s.http, func(conn *net.TCPConn) { _, _ = io.WriteString(conn, get("/large")) }))
	s.bothers("hostile: an endless head", 2, s.with(s.http, func(conn *net.TCPConn) {
		_, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: a.example\r\n")
		for err == nil {
			_, err = io.WriteString(conn, strings.Repeat("X-A: b\r\n", 1000))
		}
	}))
	s.bothers("hostile: a flood of requests", 2, s.with(s.http, func(conn *net.TCPConn) {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, _ = io.WriteString(conn, strings.Repeat(get("/large"), 1000))
	}))
	s.bothers("hostile: a handshake that ends", 2, s.with(s.https, func(conn *net.TCPConn) {
		secure := tls.Client(&deaf{conn}, &tls.Config{ServerName: steady, InsecureSkipVerify: true})
		_ = secure.HandshakeContext(s.ctx)
	}))
	s.bothers("hostile: a handshake that never begins", 2, s.with(s.https, func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "\x16\x03\x01\x02\x00\x01\x00")
		s.pause(time.Second)
	}))
	s.bothers("hostile: HTTP/2 with resets", 1, s.with(s.https, func(conn *net.TCPConn) {
		secure := tls.Client(conn, &tls.Config{ServerName: steady, InsecureSkipVerify: true,
			NextProtos: []string{"h2"}})
		if secure.HandshakeContext(s.ctx) == nil {
			reset(secure, 500)
		}
	}))
	for name := range hostileEndpoints {
		s.bothers("hostile endpoint: "+name, 1, s.with(s.http, func(conn *net.TCPConn) { s.asksHostile(conn, name) }))
	}
}

// asksHostile sends a request to a hostile endpoint, and another one to an honest endpoint on the same connection if it
// is still open.
func (s *soak) asksHostile(conn *net.TCPConn, name string) {
	sent := get("/")
	if rand.IntN(2) == 0 {
		sent = beginOfPost + strings.Repeat("x", 900_000)
	}
	go func() { _, _ = io.WriteString(conn, strings.Replace(sent, "a.example", name+".example", 1)) }()
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, nil)
	for err == nil && response.StatusCode < http.StatusOK {
		response, err = http.ReadResponse(reader, nil)
	}
	if err != nil {
		return
	}
	_, err = io.CopyN(io.Discard, response.Body, 64<<10)
	response.Body.Close()
	if !errors.Is(err, io.EOF) || response.Close {
		return
	}
	path := fmt.Sprintf("/%x", rand.Uint64())
	if _, err := io.WriteString(conn, get(path)); err != nil {
		return
	}
	var timeout net.Error
	if err := (&line{conn, reader}).gets(path); err != nil && s.ctx.Err() == nil && !errors.As(err, &timeout) {
		s.Errorf("behind an answer of %s: %v", name, err)
	}
}

// crowds opens thousands of connections that send almost nothing.
func (s *soak) crowds() {
	s.bothers("hostile: a crowd of idle clients", 1, s.crowd(s.share(10_000), func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, get("/"))
	}))
	s.bothers("hostile: a crowd with half a head", 1, s.crowd(s.share(5_000), func(conn *net.TCPConn) {
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHo"[:rand.IntN(18)])
	}))
	s.bothers("hostile: a byte of a head each second", 1, func() { s.drips(make([]*net.TCPConn, 50)) })
}

// crowd opens connections, and resets them all half a minute later.
func (s *soak) crowd(size int, begin func(*net.TCPConn)) func() {
	return func() {
		var all []*net.TCPConn
		for len(all) < size && s.ctx.Err() == nil {
			conn, err := reach(s.ctx, s.http)
			if err != nil {
				s.pause(10 * time.Millisecond)
				continue
			}
			begin(conn)
			all = append(all, conn)
		}
		s.pause(30 * time.Second)
		for _, conn := range all {
			_ = conn.SetLinger(0)
			_ = conn.Close()
		}
	}
}

// drips sends one byte per second on each connection for half a minute.
func (s *soak) drips(conns []*net.TCPConn) {
	for i := range conns {
		conns[i], _ = reach(s.ctx, s.http)
	}
	text := get("/", "X-A: "+strings.Repeat("b", 1000))
	for at := 0; at < 30 && s.ctx.Err() == nil; at++ {
		for _, conn := range conns {
			if conn != nil {
				_, _ = io.WriteString(conn, text[at:at+1])
			}
		}
		s.pause(time.Second)
	}
	for _, conn := range conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// reset opens and resets HTTP/2 streams as fast as possible.
func reset(conn net.Conn, streams int) {
	var preface bytes.Buffer
	preface.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&preface, conn)
	_ = framer.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for i := range streams {
		block.Reset()
		for _, f := range [...]hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"},
			{Name: ":authority", Value: "a.example"}, {Name: ":path", Value: "/"},
		} {
			_ = encoder.WriteField(f)
		}
		id := uint32(2*i + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true,
			EndHeaders: true})
		_ = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		if _, err := conn.Write(preface.Bytes()); err != nil {
			return
		}
		preface.Reset()
	}
}

// deaf is a connection of a client that reads nothing.
type deaf struct{ net.Conn }

func (*deaf) Read([]byte) (int, error) { return 0, errors.New("deaf") }
