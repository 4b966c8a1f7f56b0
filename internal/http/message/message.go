// Package message represents HTTP requests and responses as values that do not depend on the protocol version. A
// request is filled by the HTTP/1.1 server in package http1, or from an *http.Request (for HTTP/2, HTTP/3 and the
// administrator's own sites). Matching, filters, load balancing and proxying use these values.
package message

import (
	"context"
	"crypto/tls"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// Request is one request. It belongs to the goroutine that serves it. Its strings are immutable and safe to keep,
// because they never point into a buffer that is reused. Code that keeps a string for a long time should clone it,
// because each string keeps the memory of the whole head.
type Request struct {
	// Method is as the client sent it. Methods are case-sensitive.
	Method string
	// Host is the requested authority as the client sent it. It is empty only for HTTP/1.0.
	Host string
	// Target is the path and query as the client sent them. Filters do not change it.
	Target string
	// Path is the decoded path. EscapedPath is the path that is sent to endpoints. SetPath changes both.
	Path, EscapedPath string
	// Query is the query string without "?". It is not decoded. ForceQuery is true if the target contains "?", but the
	// query string is empty.
	Query      string
	ForceQuery bool
	// Fields are the header fields in the order in which they were received, without Host.
	Fields Fields
	// Names defines which Fields are forwarded. The server sets it before it reads the request.
	Names Names
	// Major and Minor are the HTTP version of the client.
	Major, Minor uint8
	// Length is the length of the body in bytes. It is negative if the length is not known. Body is nil if there is no
	// body.
	Length int64
	Body   io.Reader
	// Trailers returns the trailer fields after the body has been read to its end. It is nil if there can be no
	// trailers.
	Trailers func() Fields
	// LiftBodyTimeout removes the timeout between two reads of the request body. It is called before the body is read,
	// for protocols that stream in both directions. It is nil if the timeout cannot be removed.
	LiftBodyTimeout func()
	// Conn describes the connection. All requests of a connection share it.
	Conn *Conn

	ctx context.Context //nolint:containedctx // It is the context of the request, as in http.Request.
	// newContext creates ctx on its first use.
	newContext func() context.Context
	text       text
}

// Conn describes the connection of a client. It is immutable.
type Conn struct {
	// TLS is nil without TLS.
	TLS *tls.ConnectionState
	// Remote is the address of the peer, or the client address from a PROXY protocol header. It is not valid for a Unix
	// socket. Local is the address to which the client connected.
	Remote, Local netip.AddrPort
	// RemoteIP is the IP address in Remote, and LocalPort is the port in Local. They are formatted once for each
	// connection, because each request needs them. They are empty if the address is not valid.
	RemoteIP, LocalPort string
	// Listener is the port of the listener if the listener has its own virtual hosts. It is zero for the ports of
	// Caddy's HTTP servers. It is the port of the local socket, even if a PROXY protocol header contains another port.
	// It is set before the first request.
	Listener uint16
}

// NewConn returns a connection between two addresses. The addresses may have a zone or be IPv4-mapped, as the socket
// returns them. state is nil without TLS.
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

// TLS returns the TLS state of the connection. It is nil without TLS.
func (r *Request) TLS() *tls.ConnectionState { return r.Conn.TLS }

// Context returns the context of the request. It is canceled when the client disconnects or the request ends. It is
// never nil.
func (r *Request) Context() context.Context {
	if r.ctx == nil && r.newContext != nil {
		r.ctx = r.newContext()
	}
	if r.ctx == nil {
		return context.Background() //nolint:forbidigo // No context was set, as in net/http.
	}
	return r.ctx
}

// SetContextFunc sets the function that creates the context when Context is first called. Most requests end without a
// call of Context.
func (r *Request) SetContextFunc(newContext func() context.Context) {
	r.ctx, r.newContext = nil, newContext
}

// SetContext replaces the context.
func (r *Request) SetContext(ctx context.Context) { r.ctx = ctx }

// Protocol returns the HTTP version, such as "HTTP/1.1".
func (r *Request) Protocol() string {
	switch {
	case r.Major == 1 && r.Minor == 1:
		return "HTTP/1.1"
	case r.Major == 2:
		return "HTTP/2.0"
	}
	return "HTTP/" + strconv.Itoa(int(r.Major)) + "." + strconv.Itoa(int(r.Minor))
}

// OutTarget returns the target to send to an endpoint: the path and query after the changes that filters made.
func (r *Request) OutTarget() string {
	if r.Query == "" && !r.ForceQuery {
		return r.EscapedPath
	}
	// Usually no filter has changed the target, so no new string is allocated.
	if rest, ok := strings.CutPrefix(r.Target, r.EscapedPath); ok && rest != "" && rest[0] == '?' &&
		rest[1:] == r.Query {
		return r.Target
	}
	return r.EscapedPath + "?" + r.Query
}

// MaxFields is the maximum number of fields in a head. There is a limit, because a Field uses up to ten times as much
// memory as its line in the head.
const MaxFields = 256

// HasInvalidLength reports whether an HTTP/2 or HTTP/3 client sent an invalid Content-Length, or a positive one without
// a body: RFC 9113 8.1.1 and RFC 9114 4.1.2. A body that ends early is detected when it is read. For HTTP/1 the parser
// checks this.
func (r *Request) HasInvalidLength() bool {
	said := r.Fields.Count(ContentLength)
	if r.Major < 2 || said == 0 {
		return false
	}
	length, err := strconv.ParseUint(r.Fields.Get(ContentLength), 10, 63)
	return said > 1 || err != nil || length > 0 && r.Length == 0
}

// HasUnsupportedExpect reports whether the Expect field of a client has a value other than 100-continue. Several Expect
// fields form a list, which is not supported either.
func (r *Request) HasUnsupportedExpect() bool {
	expected := r.Fields.Get(Expect)
	return expected != "" && !strings.EqualFold(expected, "100-continue") || r.Fields.Count(Expect) > 1
}

// UpgradeProtocol returns the protocol to which an HTTP/1.1 client wants to upgrade, or an empty string.
func (r *Request) UpgradeProtocol() string {
	if r.Major != 1 || r.Minor == 0 || !r.Fields.HasToken(Connection, "upgrade") {
		return ""
	}
	return r.Fields.Get(Upgrade)
}

// IsWebSocket reports whether a request asks to upgrade to WebSocket, the only supported upgrade. With other protocols,
// such as h2c, a client could send requests to an endpoint that are not checked by the controller.
func (r *Request) IsWebSocket() bool { return strings.EqualFold(r.UpgradeProtocol(), "websocket") }

// Response is the head of a response.
type Response struct {
	Status int
	// Fields are in the order in which they are written. They contain neither Content-Length nor connection fields.
	Fields Fields
	// Length is the length of the body in bytes; for a response to HEAD it is the value of Content-Length. It is
	// negative if the length is not known.
	Length int64
	// Close tells the client to close the connection after the response. It has no effect in HTTP/3.
	Close bool
	// Trailers holds the names of announced trailer fields. If it is not empty, other trailer fields may follow too.
	Trailers []string
}

// Writer writes the response to one request. Only one goroutine may use it. Failures of the client connection are
// returned as errors, after which nothing more can be written.
type Writer interface {
	// Interim writes an interim response such as 103 Early Hints. Several interim responses may be written before the
	// head. Interim has no effect if the client does not support interim responses.
	Interim(status int, fields Fields) error
	// Head writes the head of the response, once. The head may be delayed until the first part of the body, or until
	// Flush. If it returns an error because the response is invalid, nothing was written, and Head may be called again.
	// No body is written for a response to HEAD, or with the status 1xx, 204 or 304.
	Head(response *Response) error
	// Write writes a part of the body. If the response has a Length, exactly that many bytes must be written. If fewer
	// bytes are written, the response is aborted, so that the client notices the error.
	Write(part []byte) (int, error)
	// ReadFrom writes everything that it reads from source until EOF. It may be faster than Write, for example if the
	// kernel can copy data between two plaintext TCP connections.
	ReadFrom(source io.Reader) (int64, error)
	// Flush sends all buffered data.
	Flush() error
	// Trailer ends the body with trailer fields, if the protocol and the client support them.
	Trailer(fields Fields) error
	// Switch returns the client connection after a head with status 101 was written. The caller then owns the
	// connection.
	Switch() (io.ReadWriteCloser, error)
	// EndBody interrupts a read of the request body that is in progress, because the rest of the body is not needed. No
	// other request can follow on the connection. Any goroutine may call EndBody while the request is served.
	EndBody()
	// Abort ends the response early, so that the client notices that it is incomplete.
	Abort()
	// Started reports whether a head was written.
	Started() bool
	// Sent returns the number of body bytes that were written.
	Sent() int64
}
