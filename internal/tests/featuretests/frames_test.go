package featuretests

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// question is a request that is written exactly as described, without a library that corrects it.
type question struct {
	method, host, path string
	// fields and trailers are lines such as "Name: value". A Content-Length is added if the body has one piece, there
	// are no trailers, and fields contain no Content-Length.
	fields, trailers []string
	// body has the parts of the body, which are written separately.
	body []string
	// line is the request line of HTTP/1. If it is empty, it is built from the method and the path.
	line string
	// pseudo are the pseudo-header fields of HTTP/2 and HTTP/3. If it is empty, they are built from method, host and
	// path.
	pseudo []string
	// open means that the body is not ended.
	open bool
}

// reply is the result of a request.
type reply struct {
	// interim are the interim responses, such as "103 map[Link:[</a.css>]]".
	interim          []string
	status           int
	fields, trailers http.Header
	body             string
	// broken says how the response, or the connection without one, ended too early: "closed", or "reset" and a code.
	broken string
}

// String returns the status and the body, or broken.
func (r *reply) String() string {
	if r.broken != "" {
		return strings.TrimSpace(r.body + " " + r.broken)
	}
	return strings.TrimSpace(fmt.Sprint(r.status, " ", r.body))
}

// malformed reports whether the request was rejected as malformed.
func (r *reply) malformed() bool { return r.status == http.StatusBadRequest || r.status == 0 }

// exchange sends a request with the test's version of HTTP on a new connection.
func (in *ingress) exchange(r *question) *reply {
	in.Helper()
	got := in.wholeReply(r)
	got.body = withoutErrorBody(got.status, got.body)
	return got
}

// wholeReply is exchange without the rule of answer.body about errors of the controller.
func (in *ingress) wholeReply(r *question) *reply {
	in.Helper()
	switch in.version {
	case secure3:
		return in.openStream3().ask(r)
	case plain2, secure2:
		return in.openStream2().ask(r)
	}
	d := in.connect()
	d.say("%s", r.http1())
	return d.reply(r.method)
}

// measured returns the fields, with the length of the body if necessary.
func (r *question) measured() []string {
	if r.open || len(r.body) != 1 || r.trailers != nil || r.saysLength() {
		return r.fields
	}
	return append(slices.Clip(r.fields), "Content-Length: "+strconv.Itoa(len(r.body[0])))
}

func (r *question) saysLength() bool {
	return slices.ContainsFunc(r.fields,
		func(line string) bool { return strings.HasPrefix(strings.ToLower(line), "content-length:") })
}

// http1 returns the request in HTTP/1 syntax.
func (r *question) http1() string {
	line := r.line
	if line == "" {
		line = r.method + " " + r.path + " HTTP/1.1"
	}
	lines := append([]string{line, "Host: " + r.host}, r.measured()...)
	chunked := (len(r.body) > 1 || r.trailers != nil || r.open) && !r.saysLength()
	if chunked {
		lines = append(lines, "Transfer-Encoding: chunked")
	}
	var text strings.Builder
	text.WriteString(strings.Join(lines, "\r\n") + "\r\n\r\n")
	for _, piece := range r.body {
		if chunked {
			piece = fmt.Sprintf("%x\r\n%s\r\n", len(piece), piece)
		}
		text.WriteString(piece)
	}
	if chunked && !r.open {
		text.WriteString(strings.Join(append([]string{"0"}, r.trailers...), "\r\n") + "\r\n\r\n")
	}
	return text.String()
}

// reply reads the responses to one request.
func (d *dialed) reply(method string) *reply {
	got := &reply{}
	for got.status < http.StatusOK {
		response, err := http.ReadResponse(d.Reader, &http.Request{Method: method})
		if err != nil {
			got.broken = "closed"
			return got
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode < http.StatusOK {
			got.interim = append(got.interim, fmt.Sprint(response.StatusCode, " ", response.Header))
			if response.StatusCode != http.StatusSwitchingProtocols {
				continue
			}
		}
		got.status, got.fields, got.body, got.trailers = response.StatusCode, response.Header, string(body),
			response.Trailer
		if err != nil {
			got.broken = "closed"
		}
		return got
	}
	return got
}

// stream is an HTTP/2 or HTTP/3 stream on a separate connection.
type stream interface {
	// head sends fields before or after the body.
	head(lines []string, end bool) error
	data(text string, end bool) error
	// next reads one frame: fields, or a part of the body.
	next() (fields []hpack.HeaderField, data string, end bool, err error)
}

// streamed sends requests on a stream.
type streamed struct{ stream }

func (s streamed) ask(r *question) *reply {
	got := &reply{}
	if err := s.send(r); err != nil {
		got.broken = brokenBy(err)
	}
	s.receive(got)
	return got
}

// send may fail after an early response.
func (s streamed) send(r *question) error {
	pseudo := r.pseudo
	if pseudo == nil {
		pseudo = []string{":method: " + r.method, ":scheme: https", ":authority: " + r.host, ":path: " + r.path}
	}
	err := s.head(append(slices.Clip(pseudo), r.measured()...), !r.open && r.body == nil && r.trailers == nil)
	for i, piece := range r.body {
		err = errors.Join(err, s.data(piece, !r.open && i == len(r.body)-1 && r.trailers == nil))
	}
	if r.trailers != nil {
		err = errors.Join(err, s.head(r.trailers, true))
	}
	return err
}

func (s streamed) receive(got *reply) {
	for {
		fields, data, end, err := s.next()
		if err != nil {
			got.broken = brokenBy(err)
			return
		}
		got.broken = ""
		got.body += data
		if fields != nil {
			got.take(fields)
		}
		if end {
			return
		}
	}
}

// take records a block of fields: of an interim response, of the final response, or trailers.
func (r *reply) take(fields []hpack.HeaderField) {
	header, status := http.Header{}, 0
	for _, f := range fields {
		if f.Name == ":status" {
			status, _ = strconv.Atoi(f.Value)
			continue
		}
		header.Add(f.Name, f.Value)
	}
	switch {
	case status == 0:
		r.trailers = header
	case status < http.StatusOK:
		r.interim = append(r.interim, fmt.Sprint(status, " ", header))
	default:
		r.status, r.fields = status, header
	}
}

// goneAway is the error for a GOAWAY frame with an error code.
type goneAway struct{ http2.ErrCode }

func (g *goneAway) Error() string { return "GOAWAY " + g.String() }

// brokenBy describes how a response has ended too early.
func brokenBy(err error) string {
	var two http2.StreamError
	var gone *goneAway
	var three *quic.StreamError
	var connection *quic.ApplicationError
	switch {
	case errors.As(err, &two):
		return "reset " + two.Code.String()
	case errors.As(err, &gone):
		return "closed " + gone.ErrCode.String()
	case errors.As(err, &three):
		return "reset " + http3.ErrCode(three.ErrorCode).String()
	case errors.As(err, &connection):
		return "closed " + http3.ErrCode(connection.ErrorCode).String()
	}
	return "closed"
}

// cutLine splits "name: value". A pseudo-header name starts with a colon.
func cutLine(line string) (name, value string) {
	name, value, _ = strings.Cut(line[1:], ": ")
	return line[:1] + name, value
}

// stream2 is an HTTP/2 stream. It uses a whole connection, unless the test changes its ID to open another one.
type stream2 struct {
	*http2.Framer
	id      uint32
	block   bytes.Buffer
	encoder *hpack.Encoder
}

func (in *ingress) openStream2() streamed {
	in.Helper()
	conn := in.connect2()
	s, err := newStream2(conn.Conn, conn.Reader)
	if err != nil {
		in.Fatal(err)
	}
	return streamed{s}
}

// twoStreams returns a stream, and a function that opens another one on the same connection.
func (in *ingress) twoStreams() (first streamed, next func() streamed) {
	in.Helper()
	if in.version != secure3 {
		first = in.openStream2()
		return first, func() streamed {
			first.stream.(*stream2).id += 2
			return first
		}
	}
	conn, s := in.connect3()
	return streamed{&stream3{s, bufio.NewReader(s)}}, func() streamed {
		s, err := conn.OpenStreamSync(in.Context())
		if err != nil {
			in.Fatal(err)
		}
		return streamed{&stream3{s, bufio.NewReader(s)}}
	}
}

// connect2 opens a connection for HTTP/2 on which the client has not sent anything yet.
func (in *ingress) connect2() *dialed {
	in.Helper()
	if in.version == plain2 {
		return in.dialed(net.Dial("tcp", in.http))
	}
	config := anybody()
	config.ServerName, config.NextProtos = "a.example", []string{"h2"}
	return in.dialed(tls.Dial("tcp", in.https, config))
}

// newStream2 writes the client's preface and settings.
func newStream2(to io.Writer, from io.Reader) (*stream2, error) {
	s := &stream2{Framer: http2.NewFramer(to, from), id: 1}
	s.encoder, s.ReadMetaHeaders = hpack.NewEncoder(&s.block), hpack.NewDecoder(4096, nil)
	s.AllowIllegalWrites = true
	_, err := io.WriteString(to, http2.ClientPreface)
	// Only the window of the connection has to grow for the bodies of the tests.
	window := http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}
	return s, errors.Join(err, s.WriteSettings(window), s.WriteWindowUpdate(0, 1<<30))
}

func (s *stream2) head(lines []string, end bool) error {
	s.block.Reset()
	for _, line := range lines {
		name, value := cutLine(line)
		if err := s.encoder.WriteField(hpack.HeaderField{Name: strings.ToLower(name), Value: value}); err != nil {
			return err
		}
	}
	rest := s.block.Bytes()
	first := rest[:min(len(rest), 16<<10)]
	rest = rest[len(first):]
	err := s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: first, EndStream: end,
		EndHeaders: len(rest) == 0})
	for len(rest) > 0 && err == nil {
		piece := rest[:min(len(rest), 16<<10)]
		rest = rest[len(piece):]
		err = s.WriteContinuation(s.id, len(rest) == 0, piece)
	}
	return err
}

func (s *stream2) data(text string, end bool) error { return s.WriteData(s.id, end, []byte(text)) }

func (s *stream2) next() (fields []hpack.HeaderField, data string, end bool, err error) {
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			return nil, "", false, err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			return f.Fields, "", f.StreamEnded(), nil
		case *http2.DataFrame:
			return nil, string(f.Data()), f.StreamEnded(), nil
		case *http2.RSTStreamFrame:
			return nil, "", false, http2.StreamError{Code: f.ErrCode}
		case *http2.GoAwayFrame:
			if f.ErrCode != http2.ErrCodeNo {
				return nil, "", false, &goneAway{f.ErrCode}
			}
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = s.WriteSettingsAck() // The next read returns the error.
			}
		}
	}
}

// stream3 is an HTTP/3 stream.
type stream3 struct {
	io.WriteCloser
	reader *bufio.Reader
}

func (in *ingress) openStream3() streamed {
	in.Helper()
	_, s := in.connect3()
	return streamed{&stream3{s, bufio.NewReader(s)}}
}

// connect3 opens an HTTP/3 connection, with a stream on which the client has not sent anything yet.
func (in *ingress) connect3() (*quic.Conn, *quic.Stream) {
	in.Helper()
	conn, _ := in.dial3(nil)
	ctx, cancel := context.WithTimeout(in.Context(), deadline)
	defer cancel()
	s, err := conn.OpenStreamSync(ctx)
	if err == nil {
		err = s.SetDeadline(time.Now().Add(deadline))
	}
	if err != nil {
		in.Fatal(err)
	}
	return conn, s
}

// transport3 returns the socket of all connections of dial3. It stays open until the process ends, because the message
// that a connection has ended may be lost. Without a client that repeats it, the server would wait for 30 seconds.
var transport3 = sync.OnceValues(func() (*quic.Transport, error) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	return &quic.Transport{Conn: socket}, err
})

// dial3 opens an HTTP/3 connection, and also returns the client's control stream. A nil config uses quic-go's defaults.
func (in *ingress) dial3(config *quic.Config) (*quic.Conn, *quic.SendStream) {
	in.Helper()
	ctx, cancel := context.WithTimeout(in.Context(), deadline)
	defer cancel()
	secure := anybody()
	secure.ServerName, secure.NextProtos = "a.example", []string{http3.NextProtoH3}
	transport, err := transport3()
	if err != nil {
		in.Fatal(err)
	}
	conn, err := transport.Dial(ctx, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(in.https)), secure, config)
	if err != nil {
		in.Fatal(err)
	}
	in.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	control, err := conn.OpenUniStreamSync(ctx)
	if err != nil {
		in.Fatal(err)
	}
	const settings = "\x00\x04\x00" // The type of the stream, and an empty settings frame.
	if _, err := io.WriteString(control, settings); err != nil {
		in.Fatal(err)
	}
	return conn, control
}

// The types of HTTP/3 frames.
const (
	frameData = 0
	frameHead = 1
)

func (s *stream3) head(lines []string, end bool) error {
	var block bytes.Buffer
	encoder := qpack.NewEncoder(&block)
	for _, line := range lines {
		name, value := cutLine(line)
		if err := encoder.WriteField(qpack.HeaderField{Name: strings.ToLower(name), Value: value}); err != nil {
			return err
		}
	}
	return s.frame(frameHead, block.Bytes(), end)
}

func (s *stream3) data(text string, end bool) error { return s.frame(frameData, []byte(text), end) }

func (s *stream3) frame(kind uint64, content []byte, end bool) error {
	head := quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(content)))
	if _, err := s.Write(append(head, content...)); err != nil || !end {
		return err
	}
	return s.Close()
}

func (s *stream3) next() (fields []hpack.HeaderField, data string, end bool, err error) {
	kind, err := quicvarint.Read(s.reader)
	if errors.Is(err, io.EOF) {
		return nil, "", true, nil
	}
	if err != nil {
		return nil, "", false, err
	}
	size, err := quicvarint.Read(s.reader)
	if err != nil {
		return nil, "", false, err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(s.reader, content); err != nil {
		return nil, "", false, err
	}
	switch kind {
	case frameData:
		return nil, string(content), false, nil
	case frameHead:
		fields, err := fields3(content)
		return fields, "", false, err
	}
	return nil, "", false, nil
}

func fields3(block []byte) (fields []hpack.HeaderField, err error) {
	for next := qpack.NewDecoder().Decode(block); ; {
		f, err := next()
		if errors.Is(err, io.EOF) {
			return fields, nil
		}
		if err != nil {
			return nil, err
		}
		fields = append(fields, hpack.HeaderField{Name: f.Name, Value: f.Value})
	}
}
