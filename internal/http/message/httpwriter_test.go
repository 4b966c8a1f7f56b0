package message_test

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestInterimOfAResetStream checks, with the race detector, that nothing reads the fields of an interim response after
// Interim has returned. Go's HTTP/2 server encodes them on another goroutine, and a client that resets the stream ends
// the wait for that goroutine. Without the race detector, such a race ends the process, since maps detect it.
func TestInterimOfAResetStream(t *testing.T) {
	fields := make(message.Fields, 2*message.MaxFields)
	for i := range fields {
		fields[i] = message.NewField("X-"+strconv.Itoa(i), "value")
	}
	ended := make(chan struct{})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		writer := message.NewHTTPWriter(w, r)
		for r.Context().Err() == nil {
			_ = writer.Interim(http.StatusEarlyHints, fields)
		}
		ended <- struct{}{}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	conn := resetterTo(t, server.Listener.Addr().String())
	for i := range uint32(300) {
		conn.ask(2*i + 1)
		<-time.After(time.Duration(i%10) * 100 * time.Microsecond)
		conn.reset(2*i + 1)
		fixture.Receive(t, "the end of the handler", ended)
	}
}

// resetter is an HTTP/2 client that resets its requests.
type resetter struct {
	*testing.T
	*http2.Framer
	head []byte
}

func resetterTo(t *testing.T, address string) *resetter {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "h"},
		{Name: ":path", Value: "/"},
	} {
		if err := encoder.WriteField(f); err != nil {
			t.Fatal(err)
		}
	}
	c := &resetter{t, http2.NewFramer(conn, conn), head.Bytes()}
	_, err = io.WriteString(conn, http2.ClientPreface)
	c.must(err)
	c.must(c.WriteSettings())
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	return c
}

func (c *resetter) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *resetter) ask(stream uint32) {
	c.Helper()
	c.must(c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.head, EndHeaders: true,
		EndStream: true}))
}

func (c *resetter) reset(stream uint32) {
	c.Helper()
	c.must(c.WriteRSTStream(stream, http2.ErrCodeCancel))
}
