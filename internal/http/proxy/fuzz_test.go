package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// scripted is a connection whose endpoint has sent everything, and which is read in pieces of a given size.
type scripted struct {
	net.Conn
	text  io.Reader
	piece int
}

func (s *scripted) Read(b []byte) (int, error)     { return s.text.Read(b[:min(len(b), s.piece)]) }
func (*scripted) SetReadDeadline(time.Time) error  { return nil }
func (*scripted) SetWriteDeadline(time.Time) error { return nil }

func script(text []byte, piece int) *conn {
	c := newConn(&scripted{text: bytes.NewReader(text), piece: piece}, key{})
	c.begin(&message.Request{}, time.Minute, time.Minute)
	return c
}

// FuzzResponse checks that every accepted response is read as net/http reads it: status, fields, body, trailers, and
// the start of the next response. The data arrives in pieces of any size.
func FuzzResponse(f *testing.F) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\nHTTP/1.1 200 OK\r\n",
		"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nDate: " +
			"now\r\n\r\nno\n",
		"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\nX-EMPTY:\r\nX-Tab: a\tb\r\nContent-Length: " +
			"10\r\n\r\nshort",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3;a=b\r\nok\n\r\n00\r\nX: y\r\nY: " +
			"z\r\n\r\nHTTP",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n0123456789abcdef\r\n1\r\n0\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\n\r\nuntil the end", "HTTP/1.1 204 No Content\r\n\r\nHTTP",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nHTTP",
		"HTTP/1.1 200 OK\r\nConnection: X-Own, close\r\nX-Own: x\r\nContent-Length: 0\r\n\r\n",
	} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 5000)
	}
	f.Fuzz(func(t *testing.T, text []byte, piece int) {
		if piece < 1 || len(text) > 100_000 {
			return
		}
		c := script(text, piece)
		if _, err := c.readHead(http.MethodGet, maxHead); err != nil || c.response.Status < http.StatusOK {
			return
		}
		if bytes.HasPrefix(text, []byte("HTTP/1.0")) && c.head.Framing == http1.Chunked {
			return // net/http rejects such chunks. The connection is not reused.
		}
		theirs := bufio.NewReaderSize(bytes.NewReader(text), max(16, len(text)))
		want, err := http.ReadResponse(theirs, nil)
		if err != nil {
			return // Tests of the parser compare heads.
		}
		defer want.Body.Close()
		if !sameBody(t, c, want) {
			return
		}
		if c.head.KeepAlive {
			compareRest(t, c, theirs, want)
		}
	})
}

// sameBody compares the bodies. It returns false if the body is incomplete.
func sameBody(t *testing.T, c *conn, want *http.Response) bool {
	t.Helper()
	c.body.begin(c)
	got, gotErr := io.ReadAll(&c.body)
	body, wantErr := io.ReadAll(want.Body)
	if gotErr != nil {
		// Our decoder rejects more malformed chunks than net/http.
		if !bytes.HasPrefix(body, got) {
			t.Fatalf("the body is %q (%v); net/http: %q (%v)", got, gotErr, body, wantErr)
		}
		return false
	}
	if c.response.Status != want.StatusCode || !bytes.Equal(got, body) || wantErr != nil {
		t.Fatalf("%d %q; net/http: %d %q, %v", c.response.Status, got, want.StatusCode, body, wantErr)
	}
	return true
}

// compareRest compares what matters only on a reused connection.
func compareRest(t *testing.T, c *conn, theirs *bufio.Reader, want *http.Response) {
	t.Helper()
	if want.Close {
		t.Error("net/http would close the connection")
	}
	var rest []byte
	for {
		rest = append(rest, c.buffered()...)
		c.at = c.end
		if err := c.fill(); errors.Is(err, io.EOF) {
			break
		}
	}
	if left, _ := io.ReadAll(theirs); !bytes.Equal(rest, left) {
		t.Errorf("behind it there is %q; net/http: %q", rest, left)
	}
	for _, field := range c.body.chunks.Trailers() {
		if values := want.Trailer.Values(field.Name); !reflect.DeepEqual(values[:1], []string{field.Value}) &&
			len(values) == 1 {
			t.Errorf("the trailer %v; net/http: %v", field, values)
		}
	}
}
