// Package message is HTTP as the rest of the house sees it: requests and answers as values, whatever version of the protocol
// they come and go by. A request is filled by our own HTTP/1.1 server (package http1), or from an *http.Request (HTTP/2, HTTP/3,
// and sites of the administrator). Matching, filters, balancing and proxying are written against it, once.
package message

import (
	"context"
	"crypto/tls"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// Request is one request. It belongs to the goroutine that serves it. Its strings are immutable, and safe to keep: they never point
// into a buffer that is read into again. What keeps one for long should clone it, because it holds all of its head.
type Request struct {
	// Method is as the client wrote it: methods are case-sensitive.
	Method string
	// Host is the authority that is asked for, as the client wrote it; only HTTP/1.0 may be without.
	Host string
	// Target is what the client asked for, as it was sent: path and query. Filters leave it as it is.
	Target string
	// Path is decoded; EscapedPath is how it goes out. SetPath changes both.
	Path, EscapedPath string
	// Query is behind the first "?", not decoded. ForceQuery says that there is such a "?" with nothing behind it.
	Query      string
	ForceQuery bool
	// Fields are the header fields in the order in which they came, but for Host.
	Fields Fields
	// Names say which Fields go on. They are set by who reads the request, before it does.
	Names Names
	// Major and Minor are the version of the protocol that the client speaks.
	Major, Minor uint8
	// Length is that of the body in bytes; less than zero is not known before its end. Body is nil for none.
	Length int64
	Body   io.Reader
	// Trailers returns the fields behind the body once that has been read to its end; nil is that there cannot be any.
	Trailers func() Fields
	// LiftPause lets the body pause for as long as the client likes. It is for routes whose protocol streams in both directions, and called
	// before the body is read. Nil means that the limit stays.
	LiftPause func()
	// Conn is what all requests of a connection have in common.
	Conn *Conn

	ctx context.Context //nolint:containedctx // It is the context of the request, as in http.Request.
	// lazily makes ctx when it is asked for.
	lazily func() context.Context
	text   text
}

// Conn is how a client is connected. It is immutable.
type Conn struct {
	// TLS is nil without.
	TLS *tls.ConnectionState
	// Remote is the address of the peer, or of the client that a PROXY protocol header named; it is not valid for a Unix socket.
	// Local is the address that was asked.
	Remote, Local netip.AddrPort
	// RemoteIP and LocalPort are parts of them as text, because each request needs them. They are empty where the address is not
	// valid.
	RemoteIP, LocalPort string
	// Listener is the port that the connection came by, if that is none of the servers' but of a listener that has virtual hosts of its
	// own. It is the port of the socket, whatever a PROXY protocol header said, and set before the first request.
	Listener uint16
}

// NewConn returns a connection between two addresses. Zones, IPv4 in IPv6 and TLS are as they come from the socket.
func NewConn(remote, local netip.AddrPort, state *tls.ConnectionState) *Conn {
	c := &Conn{TLS: state, Remote: remote, Local: local}
	if remote.IsValid() {
		c.RemoteIP = remote.Addr().Unmap().WithZone("").String()
	}
	if local.IsValid() {
		c.LocalPort = strconv.Itoa(int(local.Port()))
	}
	return c
}

// TLS returns the state of the connection; nil is without TLS.
func (r *Request) TLS() *tls.ConnectionState { return r.Conn.TLS }

// Context ends when the client has gone or nobody waits for the answer. It is never nil.
func (r *Request) Context() context.Context {
	if r.ctx == nil && r.lazily != nil {
		r.ctx = r.lazily()
	}
	if r.ctx == nil {
		return context.Background() //nolint:forbidigo // A request that nobody has given one, as in net/http.
	}
	return r.ctx
}

// SetContextFunc sets what makes the context when it is asked for the first time: most requests are answered before.
func (r *Request) SetContextFunc(lazily func() context.Context) { r.ctx, r.lazily = nil, lazily }

// SetContext replaces it.
func (r *Request) SetContext(ctx context.Context) { r.ctx = ctx }

// Protocol returns the version in the words of HTTP, such as "HTTP/1.1".
func (r *Request) Protocol() string {
	switch {
	case r.Major == 1 && r.Minor == 1:
		return "HTTP/1.1"
	case r.Major == 2:
		return "HTTP/2.0"
	}
	return "HTTP/" + strconv.Itoa(int(r.Major)) + "." + strconv.Itoa(int(r.Minor))
}

// OutTarget is the target as an endpoint is to get it: the path and the query with what filters made of them.
func (r *Request) OutTarget() string {
	if r.Query == "" && !r.ForceQuery {
		return r.EscapedPath
	}
	// Most often that is what the client sent.
	if rest, ok := strings.CutPrefix(r.Target, r.EscapedPath); ok && rest != "" && rest[0] == '?' && rest[1:] == r.Query {
		return r.Target
	}
	return r.EscapedPath + "?" + r.Query
}

// MostFields bounds the fields of a head: each takes ten times as much memory as the shortest line that makes one.
const MostFields = 256

// MisstatesLength says whether a client of HTTP/2 or HTTP/3 says a length that is none, or one of a body that it does not send: RFC 9113
// 8.1.1 and RFC 9114 4.1.2. A body that breaks off shows when it is read. HTTP/1 is refused where it is read.
func (r *Request) MisstatesLength() bool {
	said := r.Fields.Count(ContentLength)
	if r.Major < 2 || said == 0 {
		return false
	}
	length, err := strconv.ParseUint(r.Fields.Get(ContentLength), 10, 63)
	return said > 1 || err != nil || length > 0 && r.Length == 0
}

// Expects says whether a client expects something else than an answer in front of its body. Several lines are a list, which is something
// else.
func (r *Request) Expects() bool {
	expected := r.Fields.Get(Expect)
	return expected != "" && !strings.EqualFold(expected, "100-continue") || r.Fields.Count(Expect) > 1
}

// NamesUpgrade returns the protocol that the client wants to switch to with an HTTP/1.1 request, or nothing.
func (r *Request) NamesUpgrade() string {
	if r.Major != 1 || r.Minor == 0 || !r.Fields.HasToken(Connection, "upgrade") {
		return ""
	}
	return r.Fields.Get(Upgrade)
}

// IsWebSocket says whether a request asks for a WebSocket: the one protocol that a connection may be switched to. To pass on
// others, h2c for one, would let a client speak with an endpoint past all that is checked here.
func (r *Request) IsWebSocket() bool { return strings.EqualFold(r.NamesUpgrade(), "websocket") }

// Response is the head of an answer.
type Response struct {
	Status int
	// Fields are in the order in which they are written. Content-Length and those of the connection are not among them.
	Fields Fields
	// Length is that of the body, and what Content-Length says in the answer to a HEAD; less than zero is not known.
	Length int64
	// Close has the client leave the connection after the answer. HTTP/3 has no such word.
	Close bool
	// Trailers says that fields may follow the body, and their names as far as they are announced.
	Trailers []string
}

// Writer takes the answer to one request. It is for one goroutine. Whatever goes wrong with the client shows as an error, after
// which nothing more can be written.
type Writer interface {
	// Interim writes an answer such as 103 Early Hints, of which there may be several before the head. It has no effect where the
	// client does not know them.
	Interim(status int, fields Fields) error
	// Head writes the head of the answer, once. It may wait for the first part of the body, or for Flush. After an error that comes
	// from the answer itself nothing has been written, and another head may be. No body is written for an answer that can have none:
	// to HEAD, 1xx, 204 and 304.
	Head(answer *Response) error
	// Write writes a part of the body. With a Length, exactly that many bytes have to be written; fewer cut the answer off, so that
	// the client notices.
	Write(part []byte) (int, error)
	// ReadFrom writes what is read until its end. It may be cheaper than Write, as where both ends are bare TCP connections.
	ReadFrom(source io.Reader) (int64, error)
	// Flush sends what has been written.
	Flush() error
	// Trailer ends the body with fields behind it, where the protocol allows it and the client takes them.
	Trailer(fields Fields) error
	// Switch hands the connection over, after a head with the status 101. From then on it belongs to the caller.
	Switch() (io.ReadWriteCloser, error)
	// EndBody has a read of the body of the request end soon that is under way: nobody wants the rest, so no other request can follow
	// on the connection. It may be called from any goroutine while the request is served.
	EndBody()
	// Abort ends the answer where it is, so that the client notices that something is missing.
	Abort()
	// Started says whether a head has been written.
	Started() bool
	// Sent is how many bytes of the body have been written.
	Sent() int64
}
