package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// answerBody is short, so that most of the time of a request is spent in the proxy.
	answerBody = "ok\n"
	// slowPath is the path of requests whose responses wait until the backend is released, and then for slowTime.
	slowPath = "/slow"
	slowTime = 2 * time.Second
	// headRoom is the size of the read buffer, and so the maximum length of a line in a request head.
	headRoom = 32 << 10
	// textAnswer is the size of a response that compresses like prose. textPath is its path.
	textAnswer = 10 << 10
	textPath   = "/text"
	// noiseAnswer is the size of a response that hardly compresses. noisePath is its path.
	noiseAnswer = 4 << 20
	noisePath   = "/noise"
)

// longBody returns a response body of the given size.
func longBody(size int) string {
	const line = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

// longText is a text that repeats words, like prose. It is the same in every run.
var longText = func() string {
	var text strings.Builder
	random := rand.New(rand.NewPCG(1, 2))
	for text.Len() < textAnswer {
		for range 2 + random.IntN(8) {
			text.WriteByte("etaoinshrdlcumwfgypbvk"[min(random.IntN(22), random.IntN(22))])
		}
		text.WriteByte(' ')
		if random.IntN(3) == 0 {
			text.WriteString("and the answer of it was ")
		}
	}
	return text.String()[:textAnswer]
}()

// longNoise returns text without repetitions. It is the same in every run.
func longNoise() string {
	random := rand.New(rand.NewPCG(3, 4))
	noise := make([]byte, noiseAnswer)
	for i := range noise {
		noise[i] = byte(' ' + random.IntN('~'-' '))
	}
	return string(noise)
}

func answerWithBody(body string) []byte { return answerOf("text/plain", body) }

// answerOf returns a response whose body has the given media type.
func answerOf(mediaType, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		mediaType, len(body), body)
}

// switching is the response to a request for a WebSocket. After it, the backend echoes what it receives.
const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

// backend is an HTTP/1.1 server that uses as little processor time as possible. It supports only the requests that
// bench sends; their bodies have a declared length.
type backend struct {
	listener net.Listener
	address  string
	// answers holds the responses of special paths. Other paths get the short response.
	answers map[string][]byte
	short   []byte
	// slow is the number of requests for slowPath that are in progress. They get their responses slowTime after
	// released is closed.
	slow     atomic.Int64
	released chan struct{}
}

func startBackend() (*backend, error) {
	// Listen on all addresses, so that each address in 127.0.0.0/8 can be a separate endpoint.
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return nil, err
	}
	b := &backend{
		listener: listener, address: fmt.Sprintf("127.0.0.1:%d", listener.Addr().(*net.TCPAddr).Port),
		answers: map[string][]byte{}, short: answerWithBody(answerBody), released: make(chan struct{}),
	}
	for _, size := range []int{mediumAnswer, longAnswer} {
		b.answers[sizePath(size)] = answerWithBody(longBody(size))
	}
	b.answers[textPath] = answerWithBody(longText)
	b.answers[pagePath] = answerOf("text/html", page)
	go b.accept()
	return b, nil
}

func sizePath(size int) string { return "/" + strconv.Itoa(size) }

func (b *backend) stop() { b.listener.Close() }

func (b *backend) accept() {
	for {
		connection, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.serve(connection)
	}
}

// serve responds to the requests on one connection until the client closes it.
func (b *backend) serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReaderSize(connection, headRoom)
	for {
		answer, err := b.answer(connection, reader)
		if err != nil {
			return
		}
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
}

// answer reads one request and returns the response.
func (b *backend) answer(connection net.Conn, reader *bufio.Reader) ([]byte, error) {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	answer, slow := b.of(line)
	length, upgrade, err := readFields(reader)
	if err != nil {
		return nil, err
	}
	if upgrade {
		return nil, echo(connection, reader)
	}
	if _, err := reader.Discard(length); err != nil {
		return nil, err
	}
	if slow {
		b.slow.Add(1)
		<-b.released
		<-time.After(slowTime)
		b.slow.Add(-1)
	}
	return answer, nil
}

// of returns the response for a request line. slow reports whether the response has to wait.
func (b *backend) of(line []byte) (answer []byte, slow bool) {
	_, rest, _ := bytes.Cut(line, []byte(" "))
	path, _, _ := bytes.Cut(rest, []byte(" "))
	if answer, ok := b.answers[string(path)]; ok {
		return answer, false
	}
	return b.short, string(path) == slowPath
}

// chunked is the length of a body that is sent in chunks.
const chunked = -1

// readFields reads the rest of a head. It returns the length of the body, which may be chunked, and whether the head
// belongs to a request for a WebSocket.
func readFields(reader *bufio.Reader) (length int, upgrade bool, err error) {
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil || len(line) <= 2 {
			return length, upgrade, err
		}
		if value, ok := fieldOf(line, "Content-Length"); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, err
			}
		}
		if _, ok := fieldOf(line, "Transfer-Encoding"); ok {
			length = chunked
		}
		if _, ok := fieldOf(line, "Upgrade"); ok {
			upgrade = true
		}
	}
}

// fieldOf returns the value of a header line if it has the given name.
func fieldOf(line []byte, name string) (value []byte, ok bool) {
	n := len(name)
	if len(line) <= n || line[n] != ':' || !bytes.EqualFold(line[:n], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[n+1:]), true
}

// echo sends back everything that it receives until the client closes the connection.
func echo(connection net.Conn, reader *bufio.Reader) error {
	if _, err := io.WriteString(connection, switching); err != nil {
		return err
	}
	if _, err := io.Copy(connection, reader); err != nil {
		return err
	}
	return io.EOF
}
