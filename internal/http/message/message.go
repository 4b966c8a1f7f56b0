// Package message represents HTTP requests and responses in a form that does not depend on the protocol version.
// Matching, filters, load balancing and proxying use it. A Request is created by the HTTP/1.1 server with package
// http1, or from an *http.Request (for HTTP/2, HTTP/3 and the administrator's own sites).
package message

import (
	"context"
	"crypto/tls"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// Request is an HTTP request. It must only be used by the goroutine that serves the request. Its strings stay valid
// after the request, because their memory is never reused. However, each string keeps all header fields of its request
// in memory, so clone it before keeping it for a long time.
type Request struct {
	// Method is the method as the client sent it. It is case-sensitive.
	Method string
	// Host is the requested host, with an optional port, as the client sent it. It may only be empty for HTTP/1.0.
	Host string
	// Target is the path and query as the client sent them. Unlike Path and Query, it is not changed by filters.
	Target string
	// Path is the decoded path, and EscapedPath the encoded path that is sent to endpoints. SetPath changes both.
	Path, EscapedPath string
	// Query is the query string without "?". It is not decoded. ForceQuery is true if the target contains "?", but the
	// query string is empty.
	Query      string
	ForceQuery bool
	// Fields are the header fields, except Host, in the order in which they were received.
	Fields Fields
	// NominatesTooMany is true if the request comes from net/http and its Connection fields list too many names.
	NominatesTooMany bool
	// Names defines which fields with unusual characters in their names are kept in Fields. The server sets it before
	// it reads the request.
	Names Names
	// Major and Minor are the HTTP version of the client.
	Major, Minor uint8
	// Length is the length of the body in bytes. It is negative if the length is not known. Body is nil if there is no
	// body.
	Length int64
	Body   io.Reader
	// Trailers returns the trailer fields. It must only be called after the body was read to its end. It is nil if the
	// request has no trailer fields.
	Trailers func() Fields
	// LiftBodyTimeout removes the read timeout for the request body. It is called before the body is read, for
	// protocols that stream in both directions, such as gRPC. It is nil if the timeout cannot be removed.
	LiftBodyTimeout func()
	// Conn describes the client connection. All requests on the connection share it.
	Conn *Conn
	// Panicked is set if the handler has panicked and has then responded with an error. A goroutine of the handler may
	// still use the request and its body, so the server must not reuse their memory.
	Panicked bool

	ctx context.Context //nolint:containedctx // It is the context of the request, as in http.Request.
	// newContext creates ctx when Context is called for the first time.
	newContext func() context.Context
	text       text
}

// Conn describes the connection of a client. It is immutable.
type Conn struct {
	// TLS is nil without TLS.
	TLS *tls.ConnectionState
	// Remote is the address of the client. It comes from the PROXY protocol header if there is such a header, and is
	// not valid for a Unix socket. Local is the address to which the client connected.
	Remote, Local netip.AddrPort
	// RemoteIP is the IP address in Remote as a string, and LocalPort the port in Local. They are formatted once per
	// connection, because every request needs them. They are empty if the address is not valid.
	RemoteIP, LocalPort string
	// Listener is the local port of the connection if the connection was accepted by a listener with its own virtual
	// hosts. It is zero for the ports of Caddy's HTTP servers. A PROXY protocol header does not change it. It is set
	// before the first request.
	Listener uint16
}

// NewConn returns a Conn with these addresses. The addresses may have an IPv6 zone, or be IPv4-mapped IPv6 addresses,
// as sockets return them. state is nil without TLS.
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

// SetContextFunc sets the function that creates the context when Context is called for the first time. Most requests
// never call Context and need no context.
func (r *Request) SetContextFunc(newContext func() context.Context) {
	r.ctx, r.newContext = nil, newContext
}

// SetContext replaces the context of the request.
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

// OutTarget returns the path and query to send to an endpoint, including the changes that filters have made.
func (r *Request) OutTarget() string {
	if r.Query == "" && !r.ForceQuery {
		return r.EscapedPath
	}
	// If no filter has changed the target, return the original string instead of allocating a new one.
	if rest, ok := strings.CutPrefix(r.Target, r.EscapedPath); ok && rest != "" && rest[0] == '?' &&
		rest[1:] == r.Query {
		return r.Target
	}
	return r.EscapedPath + "?" + r.Query
}

// MaxFields is the maximum number of header fields in a request. It is limited because a Field may use ten times as
// much memory as the bytes that the client sent for it.
const MaxFields = 256

// HasInvalidLength reports whether a request over HTTP/2 or HTTP/3 has an invalid Content-Length, or a positive
// Content-Length without a body (RFC 9113 8.1.1, RFC 9114 4.1.2). A body that ends early is detected when it is read.
// HTTP/1 requests are checked by the parser instead.
func (r *Request) HasInvalidLength() bool {
	said := r.Fields.Count(ContentLength)
	if r.Major < 2 || said == 0 {
		return false
	}
	length, err := strconv.ParseUint(r.Fields.Get(ContentLength), 10, 63)
	return said > 1 || err != nil || length > 0 && r.Length == 0
}

// HasUnsupportedExpect reports whether the request has an Expect field with a value other than 100-continue, or several
// Expect fields. Neither is supported.
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

// IsWebSocket reports whether a request asks to upgrade to WebSocket. Other upgrades are not supported: after an
// upgrade to h2c, for example, a client could send requests that the controller cannot check.
func (r *Request) IsWebSocket() bool { return strings.EqualFold(r.UpgradeProtocol(), "websocket") }

// Response is the head of an HTTP response: the status and the header fields, without the body.
type Response struct {
	Status int
	// Fields are the header fields in the order in which they are written, without Content-Length and without fields
	// about the connection.
	Fields Fields
	// Length is the length of the body in bytes, or negative if it is not known. For a response to a HEAD request, it
	// is the value of Content-Length.
	Length int64
	// Close tells the client to close the connection after the response. It has no effect in HTTP/3.
	Close bool
	// Trailers holds the names of announced trailer fields. If it is not empty, unannounced trailer fields may follow
	// too.
	Trailers []string
}

// MediaType returns the media type in the Content-Type field, in lower case and without parameters.
func (r *Response) MediaType() string {
	media, _, _ := strings.Cut(r.Fields.Get(ContentType), ";")
	return strings.ToLower(strings.Trim(media, " \t"))
}

// Writer writes the response to one request. It is not safe for concurrent use, except EndBody. If the client
// connection fails, methods return an error, and nothing more can be written.
type Writer interface {
	// Interim writes an interim response (status 1xx), such as 103 Early Hints. It may be called several times before
	// Head. It does nothing if the client does not support interim responses.
	Interim(status int, fields Fields) error
	// Head writes the status and the header fields of the response. It must be called once, before the body is written.
	// The data may be buffered until the first part of the body is written or Flush is called. If Head returns an error
	// because the response is invalid, nothing was written and Head may be called again. If a response to HEAD or with
	// the status 1xx, 204 or 304 has a body, the body is discarded.
	Head(response *Response) error
	// Write writes a part of the body. If the response has a Length, the body must have exactly that many bytes. If it
	// is shorter, the response is aborted, so that the client notices the error.
	Write(part []byte) (int, error)
	// ReadFrom copies the body from source until EOF. It may be faster than Write: the kernel can copy data between two
	// TCP connections without TLS, for example.
	ReadFrom(source io.Reader) (int64, error)
	// Flush sends all buffered data.
	Flush() error
	// Trailer ends the body with trailer fields, if the protocol and the client support them.
	Trailer(fields Fields) error
	// Switch takes over the client connection after a response head with status 101 was written. The caller then owns
	// the returned connection.
	Switch() (io.ReadWriteCloser, error)
	// EndBody makes reads of the request body fail, including a read in progress. It is called if the rest of the body
	// is not needed. The connection cannot be used for another request afterwards. EndBody may be called by any
	// goroutine while the request is served.
	EndBody()
	// Abort ends the response early, so that the client notices that the response is incomplete.
	Abort()
	// Started reports whether the head of the response was written.
	Started() bool
	// Sent returns the number of body bytes that were written.
	Sent() int64
}
