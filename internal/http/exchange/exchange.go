// Package exchange represents a request on its way through filters to an endpoint, together with its response. Filters,
// load balancing and proxying work with it. It does not depend on the HTTP version of the client, nor on the server
// that received the request.
package exchange

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// Exchange is one request with its response. It belongs to the goroutine that serves the request, and must not be used
// after the request.
type Exchange struct {
	*message.Request
	// Route is the route that the request matches.
	Route *Route
	// Backend is the backend whose endpoints get the request. It is nil for a route that responds by itself.
	Backend *balancer.Backend
	// Clients and Global are the settings at the start of the request.
	Clients *realip.Policy
	Global  *ir.Global
	// Headers are the administrator's header fields. Nil means that no fields are configured.
	Headers *Headers
	// Peer describes the client certificate of the connection. It is nil on hosts that do not request one.
	Peer *mtls.Client
	// Writer writes the response. Filters and the proxy write its head with Exchange.Head, so that changes are applied.
	Writer message.Writer

	// ForAllResponses are the changes to all responses, including errors.
	ForAllResponses Changes
	// CloseConn tells the client to close the connection after the response, unless the connection switches to another
	// protocol.
	CloseConn bool
	// PassesOn is true if a request without a route is passed to the next Caddy handler.
	PassesOn bool
	// ErrorFields are fields that a Caddy handler set before it returned an error, such as WWW-Authenticate. They are
	// added to the error response.
	ErrorFields message.Fields
	// Status is the status of the response, once its head was written.
	Status int
	// Prepare prepares a request for Caddy handlers. It is nil if the request is already prepared.
	Prepare func(w http.ResponseWriter, r *http.Request) *http.Request

	// ForEndpoint are fields that are sent to the endpoint in addition to the client's.
	ForEndpoint message.Fields
	// Replaced are the statuses of endpoint responses that are replaced by an error page. Forwarding then ends with
	// ErrReplaced.
	Replaced []int
	// Pages are the statuses for which the controller's own responses are replaced by an error page.
	Pages []int
	// Forwarded is true after the request has passed all filters. Before that, the request may have been rejected by
	// access control.
	Forwarded bool
	// Hidden is the failure that the client does not see because it gets an error page. It is still logged.
	Hidden error

	// Span is the OpenTelemetry span of the request. It is nil if the request is not traced.
	Span trace.Span

	// Retained is true if something may hold the exchange after the request, such as a Caddy handler. It must then not
	// be reused.
	Retained bool

	// changes starts in firstChanges, which is large enough for most requests.
	changes      Changes
	firstChanges [4]*message.Changes
	// client describes the origin of the request. It is set once Client was called.
	client    realip.Client
	hasClient bool
	// id is set once ID was called.
	id    string
	hasID bool

	// tried starts in first, which is large enough for most requests.
	tried []*balancer.Endpoint
	first [2]*balancer.Endpoint
	// attempts holds the finished attempts. It starts in firstAttempts.
	attempts      []Attempt
	firstAttempts [2]Attempt
	// responseStatus is the status of the current attempt's response. It is 0 until the response has started.
	responseStatus int
	// choice is the endpoint of the current attempt, which began at start. It is only valid while open is true.
	choice balancer.Choice
	start  time.Time
	open   bool
	// measured is true after the response time of the endpoint was recorded.
	measured bool
	// cookie is the Set-Cookie value of the session cookie. If noCookie is true, no session cookie is set.
	cookie   string
	noCookie bool
	// pageStatus is the status to send instead of the endpoint's status. Zero sends the endpoint's status.
	pageStatus int
	// atEnd holds the functions that Close calls.
	atEnd []func()
}

// Route describes one path of one host. It is immutable.
type Route struct {
	// Host, Path and Type are as in the document.
	Host, Path, Type string
	// Origin is the object from which the route comes, as "Kind/namespace/name".
	Origin string
	// Regex is the compiled path. It is nil unless the path is a regular expression.
	Regex *pattern.Pattern
	// Unlogged excludes requests for this route from the access log.
	Unlogged bool
}

// Submatch returns the submatch indexes of the route's regular expression in path, as regexp.FindStringSubmatchIndex
// does. It returns nil if the route has no regular expression.
func (r *Route) Submatch(path string) []int {
	if r.Regex == nil {
		return nil
	}
	return r.Regex.Submatch(path)
}

// Namespace returns the namespace of the backend. It is empty for a request without a backend.
func (x *Exchange) Namespace() string {
	if x.Backend == nil {
		return ""
	}
	return x.Backend.Namespace()
}

// AtEnd registers a function that is called at the end of the exchange, including a stream that the request was
// upgraded to.
func (x *Exchange) AtEnd(fn func()) { x.atEnd = append(x.atEnd, fn) }

// Close ends the exchange and its last attempt, if it is still open.
func (x *Exchange) Close() {
	x.End()
	for _, fn := range x.atEnd {
		fn()
	}
	x.atEnd = nil
}

// Client returns the origin of the request, as far as trusted proxies define it.
func (x *Exchange) Client() *realip.Client {
	if !x.hasClient {
		x.client, x.hasClient = x.Clients.Of(x.Request), true
	}
	return &x.client
}

// ForwardedFor returns the value of X-Forwarded-For for the endpoint.
func (x *Exchange) ForwardedFor() string { return x.Clients.ForwardedFor(x.Request, x.Client()) }

// maxID is the maximum length in bytes of a request ID from a client.
const maxID = 128

// ID returns the request ID. It is the ID that the client sent, if it is safe to log, otherwise 32 hexadecimal digits
// as in nginx. It is empty if the options disable generated IDs and the client sent none.
func (x *Exchange) ID() string {
	if x.hasID {
		return x.id
	}
	x.hasID = true
	if given, ok := x.Fields.Lookup(message.XRequestID); ok && validID(given) &&
		x.Fields.Count(message.XRequestID) == 1 {
		x.id = given
	} else if !x.Global.NoRequestID {
		var raw [16]byte
		binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
		binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
		var digits [2 * len(raw)]byte
		hex.Encode(digits[:], raw[:])
		x.id = x.Keep(digits[:])
	}
	return x.id
}

func validID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Hash implements balancer.ClientInfo.
func (x *Exchange) Hash(t *nginx.Template) string { return t.Expand(x.Variable) }

// Cookie implements balancer.ClientInfo.
func (x *Exchange) Cookie(name string) string {
	value, _ := x.Request.Cookie(name)
	return value
}

// ClientIP implements balancer.ClientInfo.
func (x *Exchange) ClientIP() string { return x.Client().IP }
