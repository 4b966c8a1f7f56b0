package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	// frameSize is the maximum frame size that every server accepts. streamWindow is the number of bytes that every
	// server accepts in a body before it opens the window.
	frameSize    = 16 << 10
	streamWindow = 64<<10 - 1
	// largeFields is the number of fields of largeField bytes that result in a head of 16 KB.
	largeFields, largeField = 4, 4 << 10
)

// openRequests describes the requests of one HTTP/2 connection. Their bodies never end.
type openRequests struct {
	streams int
	// fields is the number of additional fields in each head. fieldSize is the size of each, in bytes.
	fields, fieldSize int
	// length is the declared length of each body; 0 declares none. sent is how much of it is sent, at most
	// streamWindow.
	length, sent int
}

// openTwo returns clients that have one HTTP/2 connection each, with the given requests.
func (t *target) openTwo(name string, clients int, each openRequests) *hostile {
	return &hostile{name: name, clients: clients, do: func(ctx context.Context, number int, results *outcomes) {
		t.twoConnected(ctx, number, results, func(conn net.Conn) { newTwoConn(conn, results).run(ctx, each) })
	}}
}

// twoConnected runs do on a TLS connection that speaks HTTP/2.
func (t *target) twoConnected(ctx context.Context, number int, results *outcomes, do func(net.Conn)) {
	connected(ctx, t.https, number, results, func(plain net.Conn) {
		conn := tls.Client(plain, clientTLS("h2"))
		if err := conn.HandshakeContext(ctx); err != nil {
			results.add("without a TLS handshake", 1)
			return
		}
		do(conn)
	})
}

// twoConn is the client side of an HTTP/2 connection. It counts how its requests end.
type twoConn struct {
	conn    net.Conn
	framer  *http2.Framer
	encoder *hpack.Encoder
	block   bytes.Buffer
	results *outcomes
	// mutex guards the fields below, and writes of frames.
	mutex sync.Mutex
	// window is the number of bytes of bodies that the server accepts. room wakes the writer when window grows or the
	// connection ends.
	window int
	room   *sync.Cond
	ended  bool
	open   map[uint32]bool
}

func newTwoConn(conn net.Conn, results *outcomes) *twoConn {
	c := &twoConn{conn: conn, framer: http2.NewFramer(conn, conn), results: results, window: streamWindow,
		open: map[uint32]bool{}}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4<<10, nil)
	c.encoder = hpack.NewEncoder(&c.block)
	c.room = sync.NewCond(&c.mutex)
	return c
}

// run opens the requests and waits until the connection ends. Requests that are open then have its outcome.
func (c *twoConn) run(ctx context.Context, each openRequests) {
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		c.read()
	}()
	sent := c.send(each)
	<-reading
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.results.add("open", -len(c.open))
	c.results.add(endOf(ctx), len(c.open))
	c.results.add("not sent", each.streams-sent)
}

// send opens the requests, and returns how many heads it has sent.
func (c *twoConn) send(each openRequests) (sent int) {
	if !c.write(c.preface) {
		return 0
	}
	body := []byte(longBody(each.sent))
	for i := range each.streams {
		id := uint32(2*i + 1)
		if !c.write(func() error { return c.head(id, each) }) {
			return i
		}
		for left := body; len(left) > 0; {
			n := min(len(left), frameSize)
			if !c.await(n) || !c.write(func() error { return c.data(id, left[:n]) }) {
				return i + 1
			}
			left = left[n:]
		}
	}
	return each.streams
}

// write calls do while no other frame is written, and reports whether it was successful.
func (c *twoConn) write(do func() error) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return !c.ended && do() == nil
}

func (c *twoConn) preface() error {
	if _, err := c.conn.Write([]byte(http2.ClientPreface)); err != nil {
		return err
	}
	return c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0})
}

// head sends the head of a request, in as many frames as necessary.
func (c *twoConn) head(id uint32, each openRequests) error {
	c.block.Reset()
	fields := []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "https"},
		{Name: ":authority", Value: hostName(secureHost)}, {Name: ":path", Value: "/"},
	}
	if each.length > 0 {
		fields = append(fields, hpack.HeaderField{Name: "content-length", Value: strconv.Itoa(each.length)})
	}
	for i := range each.fields {
		// Sensitive fields are not added to the HPACK table, which would shrink later heads.
		fields = append(fields, hpack.HeaderField{Name: fmt.Sprintf("x-large-%d", i),
			Value: strings.Repeat("X", each.fieldSize), Sensitive: true})
	}
	for _, field := range fields {
		if err := c.encoder.WriteField(field); err != nil {
			return err
		}
	}
	if err := c.writeBlock(id); err != nil {
		return err
	}
	c.open[id] = true
	c.results.add("open", 1)
	return nil
}

func (c *twoConn) writeBlock(id uint32) error {
	part := c.block.Next(frameSize)
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part,
		EndHeaders: c.block.Len() == 0})
	for err == nil && c.block.Len() > 0 {
		part = c.block.Next(frameSize)
		err = c.framer.WriteContinuation(id, c.block.Len() == 0, part)
	}
	return err
}

// data sends a part of a body if its request is still open.
func (c *twoConn) data(id uint32, part []byte) error {
	if !c.open[id] {
		c.window += len(part)
		return nil
	}
	return c.framer.WriteData(id, false, part)
}

// await waits until the window has n bytes and takes them. It returns false if the connection has ended.
func (c *twoConn) await(n int) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for c.window < n && !c.ended {
		c.room.Wait()
	}
	c.window -= n
	return !c.ended
}

// read handles the server's frames until the connection ends.
func (c *twoConn) read() {
	for {
		frame, err := c.framer.ReadFrame()
		if err == nil {
			err = c.handle(frame)
		}
		if err != nil {
			break
		}
	}
	c.mutex.Lock()
	c.ended = true
	c.mutex.Unlock()
	c.room.Broadcast()
}

func (c *twoConn) handle(frame http2.Frame) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.framer.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.framer.WritePing(true, f.Data)
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int(f.Increment)
			c.room.Broadcast()
		}
	case *http2.MetaHeadersFrame:
		c.close(f.StreamID, "answered "+f.PseudoValue("status"))
	case *http2.RSTStreamFrame:
		c.close(f.StreamID, "reset with "+f.ErrCode.String())
	}
	return nil
}

// close counts the outcome of a request, unless it has one already.
func (c *twoConn) close(id uint32, outcome string) {
	if c.open[id] {
		delete(c.open, id)
		c.results.add("open", -1)
		c.results.add(outcome, 1)
	}
}

const (
	// floodFrames is the number of CONTINUATION frames that a client sends on one connection. floodPause is the time
	// until it connects again.
	floodFrames = 1000
	floodPause  = silentAgain / 50
)

// continuations returns clients that send CONTINUATION frames until the server closes the connection, and then connect
// again.
func (t *target) continuations(clients int) *hostile {
	name := fmt.Sprintf("%d clients that send CONTINUATION frames without end", clients)
	return &hostile{name: name, clients: clients, do: func(ctx context.Context, number int, results *outcomes) {
		for ctx.Err() == nil {
			t.twoConnected(ctx, number, results, func(conn net.Conn) {
				c := newTwoConn(conn, results)
				go c.read()
				results.add(c.flood(ctx), 1)
			})
			wait(ctx, time.Now().Add(floodPause))
		}
	}}
}

// flood sends a head that never ends, and returns the outcome of the connection.
func (c *twoConn) flood(ctx context.Context) string {
	if !c.write(c.preface) {
		return endOf(ctx)
	}
	field := hpack.HeaderField{Name: "x-flood", Value: strings.Repeat("X", largeField), Sensitive: true}
	if err := c.encoder.WriteField(field); err != nil {
		return err.Error()
	}
	block := c.block.Bytes()
	frame := func() error {
		return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
	}
	for range floodFrames {
		if !c.write(frame) {
			return endOf(ctx)
		}
		frame = func() error { return c.framer.WriteContinuation(1, false, block) }
	}
	return fmt.Sprintf("not closed after %d frames", floodFrames)
}
