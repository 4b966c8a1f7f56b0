// Package exchangetest creates exchanges without a server, and records their responses. Only tests import it.
//
// A test writes the head of a request or a response as one string. It is the first line, followed by the header fields:
//
//	GET https://shop.example/cart?id=7 | Origin: https://a.example | Cookie: a=b
//	302 | Location: https://a.example/
//
// The URL has the scheme of the connection, and the host and the target of the request.
package exchangetest

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// Client is the IP address of the client of a new exchange. Ingress is the object that defines its route.
const (
	Client  = "192.0.2.1"
	Ingress = "Ingress/shop/web"
)

// separator stands between the first line and the header fields of a head.
const separator = " | "

// New returns an exchange for an HTTP/1.1 request, and the Recorder that gets its response. The route of the exchange
// is the path "/" of the requested host, and all settings have their defaults. If the URL in head has no scheme and no
// host, the request has no Host header.
func New(t testing.TB, head string) (*exchange.Exchange, *Recorder) {
	t.Helper()
	line, fields, _ := strings.Cut(head, separator)
	method, url, _ := strings.Cut(line, " ")
	r := &message.Request{Method: method, Major: 1, Minor: 1, Fields: Fields(fields)}
	if err := r.SetTarget(url); err != nil {
		t.Fatalf("%q: %v", head, err)
	}
	local, state := "198.51.100.1:80", (*tls.ConnectionState)(nil)
	if strings.HasPrefix(url, "https:") {
		local, state = "198.51.100.1:443", &tls.ConnectionState{HandshakeComplete: true}
	}
	r.Conn = message.NewConn(netip.MustParseAddrPort(Client+":4711"), netip.MustParseAddrPort(local), state)
	r.SetContext(t.Context())
	route := &exchange.Route{Host: message.Hostname(r.Host), Path: "/", Type: string(ir.MatchPrefix), Origin: Ingress}
	w := &Recorder{}
	return &exchange.Exchange{
		Request: r, Route: route, Clients: realip.New(ir.Clients{}), Global: &ir.Global{}, Writer: w,
	}, w
}

// SetClient sets the address of the client. An invalid address is the address of a client on a Unix socket.
func SetClient(x *exchange.Exchange, client netip.Addr) {
	remote := netip.AddrPort{}
	if client.IsValid() {
		remote = netip.AddrPortFrom(client, 4711)
	}
	x.Conn = message.NewConn(remote, x.Conn.Local, x.Conn.TLS)
}

// SetBody sets the body of the request.
func SetBody(x *exchange.Exchange, body string) {
	x.Body, x.Length = strings.NewReader(body), int64(len(body))
}

// Head returns the head of the request as it would be sent to an endpoint. New accepts it.
func Head(x *exchange.Exchange) string {
	url := x.OutTarget()
	if x.Host != "" {
		url = x.Scheme() + "://" + x.Host + url
	}
	return join(x.Method+" "+url, x.Fields)
}

// Fields returns the header fields in a text such as "Origin: https://a.example | Cookie: a=b".
func Fields(text string) (fields message.Fields) {
	for line := range strings.SplitSeq(text, separator) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields.Add(message.NewField(name, strings.TrimSpace(value)))
		}
	}
	return fields
}

// Text returns header fields in the form that Fields accepts.
func Text(fields message.Fields) string {
	lines := make([]string, 0, len(fields))
	for i := range fields {
		lines = append(lines, fields[i].Name+": "+fields[i].Value)
	}
	return strings.Join(lines, separator)
}

// Response returns the response with the given head and without a body. If the head is malformed, the test fails, and
// the status is 500. Response may be called on any goroutine.
func Response(t testing.TB, head string) *message.Response {
	t.Helper()
	line, fields, _ := strings.Cut(head, separator)
	status, err := strconv.Atoi(line)
	if err != nil {
		t.Errorf("%q: %v", head, err)
		status = http.StatusInternalServerError
	}
	return &message.Response{Status: status, Fields: Fields(fields)}
}

func join(line string, fields message.Fields) string {
	if len(fields) == 0 {
		return line
	}
	return line + separator + Text(fields)
}

// Recorder is a message.Writer that records the head and the body of a response. It panics if a second head is written,
// and in the methods for interim responses, trailers and upgrades.
type Recorder struct {
	message.Writer
	// Response is the head of the response, or nil before the head is written.
	Response *message.Response
	// Body is the body written so far.
	Body bytes.Buffer
}

// String returns the head of the response, or "none" before the head is written.
func (r *Recorder) String() string {
	if r.Response == nil {
		return "none"
	}
	return join(strconv.Itoa(r.Response.Status), r.Response.Fields)
}

// Head implements message.Writer.
func (r *Recorder) Head(response *message.Response) error {
	if r.Started() {
		panic("exchangetest: a second head of the response: " + strconv.Itoa(response.Status))
	}
	r.Response = response
	return nil
}

// Write implements message.Writer.
func (r *Recorder) Write(part []byte) (int, error) { return r.Body.Write(part) }

// ReadFrom implements message.Writer.
func (r *Recorder) ReadFrom(source io.Reader) (int64, error) { return r.Body.ReadFrom(source) }

// Flush implements message.Writer. It does nothing.
func (*Recorder) Flush() error { return nil }

// Started implements message.Writer.
func (r *Recorder) Started() bool { return r.Response != nil }

// Sent implements message.Writer.
func (r *Recorder) Sent() int64 { return int64(r.Body.Len()) }
