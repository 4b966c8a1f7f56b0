// Package exchange represents a request and its response while filters, the load balancer and the proxy process it. It
// is independent of the client's HTTP version and of the server that received the request.
package exchange

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/meter"
	"github.com/k8singress/k8singress/internal/http/mtls"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// Exchange is one request and its response. It must only be used by the goroutine that serves the request, and not
// after the request has ended.
type Exchange struct {
	*message.Request
	// Route is the route that the request matches.
	Route *Route
	// Matched is the route that a request matches which is answered before it gets the route, for example with a
	// redirect to HTTPS, or because its client certificate is not accepted. Logs use it if Route is nil.
	Matched *Route
	// Backend is the backend that the request is forwarded to. It is nil if the route responds without a backend.
	Backend *balancer.Backend
	// Clients defines which proxies are trusted to report the client's address, and Global holds the settings that are
	// not specific to a host. Both were read when the request started.
	Clients *realip.Policy
	Global  *ir.Global
	// Headers are the administrator's changes to header fields. Nil means that there are no changes.
	Headers *Headers
	// Meter counts the requests of the last route of an object that the request got. It is nil for a request that
	// matches no route.
	Meter *meter.Route
	// Received is the number of body bytes that were read from the client in order to forward them. Received and
	// Relayed also include the bytes from and to the client after an upgrade to another protocol.
	Received, Relayed int64
	// Variables are the variables that the administrator defines. Nil means that there are none.
	Variables *variables.Set
	// Peer describes the client certificate of the connection. It is nil if the host does not request client
	// certificates.
	Peer *mtls.Client
	// Writer writes the response. Filters and the proxy must write the head of the response with Exchange.Head, so that
	// header changes are applied.
	Writer message.Writer
	// ResponseEnds are the functions that EndResponse calls. A filter that replaces Writer may append a function that
	// ends its own Writer. The function gets the error of the request, and returns the error to use instead.
	ResponseEnds []func(error) error

	// ByServer are the header changes that the HTTP server makes to all of its responses. It is nil if there are none.
	ByServer *message.Changes
	// ForAllResponses are the header changes that apply to all responses, including error responses.
	ForAllResponses Changes
	// CloseConn is true if the connection to the client must be closed after the response. It has no effect if the
	// connection switches to another protocol.
	CloseConn bool
	// ErrorBodies is true if the controller's own error responses have a body. ErrorReason is a constant for this body
	// that says why the request is rejected. It may be empty.
	ErrorBodies bool
	ErrorReason string
	// ErrorRoutes is true if the error routes of a Caddy server respond to requests that fail or are rejected.
	ErrorRoutes bool
	// PassesOn is true if a request that matches no route is passed to the next Caddy handler instead of getting the
	// response of the default backend or 404.
	PassesOn bool
	// ErrorFields are header fields for the error response, such as WWW-Authenticate, that a Caddy handler or a filter
	// set before it returned an error.
	ErrorFields message.Fields
	// Status is the status of the response. It is 0 until the head of the response is written.
	Status int
	// Prepare prepares a request for Caddy handlers in the same way as Caddy's HTTP server does. It is nil if Caddy's
	// HTTP server has already prepared the request.
	Prepare func(w http.ResponseWriter, r *http.Request) *http.Request
	// CaddyContext is the context that Caddy's HTTP server, or Prepare, has created for the Caddy handlers of the
	// request. It holds their variables, placeholders and log fields. It is nil if no Caddy handler was run.
	CaddyContext context.Context //nolint:containedctx // It is the context of a request.

	// Authenticated is true if a filter has verified the user name and the password in the Authorization header.
	Authenticated bool
	// WithoutAuthorization is true if requests to the endpoint must not have the client's Authorization header.
	WithoutAuthorization bool
	// ForEndpoint are header fields that are sent to the endpoint in addition to the client's header fields.
	ForEndpoint message.Fields
	// Replaced are the statuses for which an endpoint's response is replaced with an error page. Forwarding then fails
	// with ErrReplaced.
	Replaced []int
	// Pages are the statuses for which a response generated by the controller itself is replaced with an error page.
	Pages []int
	// Forwarded is true if the request has passed all filters. If it is false, access control may have rejected the
	// request.
	Forwarded bool
	// Hidden is the error of the request if the client got an error page instead. It is used for logs and traces.
	Hidden error
	// Refused is the error with which the controller itself has responded although no handler has returned an error,
	// for example because a limit is exceeded. It is used for logs.
	Refused error

	// Span is the OpenTelemetry span of the request. It is nil if the request is not traced.
	Span trace.Span

	// Reroutes is the number of times that the request got another route, after a filter or for an error page.
	Reroutes uint8
	// Named is the name of the location that must serve the request, if a filter sets it before it returns ErrReroute.
	Named string
	// From is the namespace of the route that has passed the request on. It is empty for a request of a client.
	From string
	// RewriteEnded is true if a program has ended the steps of nginx's rewrite module for this route, with "break".
	// Later filters then do not redirect the request to another URL, and do not rewrite its path.
	RewriteEnded bool
	// ServerProgram is the filter that has run the steps of the host for this request, or nil. They run only once.
	ServerProgram any
	// KnownHost is true if an Ingress defines the host of the request, which may lack a rule for the path.
	KnownHost bool
	// Unlogged is true if a program has removed the request from the access log.
	Unlogged bool
	// Retained is true if a Caddy handler or other code may keep a reference to the exchange after the request. The
	// exchange must then not be reused.
	Retained bool

	// changes are the header changes that ChangeResponse has registered. The slice initially uses the memory of
	// firstChanges, which suffices for most requests.
	changes      Changes
	firstChanges [4]*message.Changes
	// forEndpoint and forResponse are the directives of programs. forEndpoint applies to requests to endpoints, their
	// responses and the response of external authentication. forResponse applies to the response to the client.
	forEndpoint, forResponse directiveList
	// errors says how errors are handled. It is nil if no program decides about it.
	errors *errorState
	// scripted holds variables and capture groups. It is nil if no program has set any. defined holds the values of
	// Variables. It is nil until one of them is used.
	scripted *scripted
	defined  *variables.Values
	// endpointFields are the header fields of the endpoint's response, if the directives of programs use them. response
	// is the response while such directives change it. authResponse is set while SetAuthVariables runs.
	endpointFields message.Fields
	response       *message.Response
	authResponse   *authResponse
	// limited says which limits still apply to the request if it gets another route.
	limited limited
	// received are the header fields that the client has sent, without fields that an error page must not get. It is
	// nil if no program has changed the header fields.
	received message.Fields
	// client caches the result of Client. It is valid if hasClient is true.
	client    realip.Client
	hasClient bool
	// id caches the result of ID. It is valid if hasID is true.
	id    string
	hasID bool

	// tried are the endpoints that were tried so far for the route. The slice initially uses the memory of the field
	// first, which suffices for most requests.
	tried []*balancer.Endpoint
	first [2]*balancer.Endpoint
	// attempts are the finished attempts of all routes and error pages of the request. The slice initially uses the
	// memory of firstAttempts.
	attempts      []Attempt
	firstAttempts [2]Attempt
	// ofPage is the number of attempts to get an error page from another backend. They are the last attempts.
	ofPage int
	// responseStatus is the status of the endpoint's response in the current attempt. It is 0 until the response
	// starts.
	responseStatus int
	// choice is the endpoint that the load balancer chose for the current attempt, and start is when the attempt
	// started. Both are only valid while open is true.
	choice balancer.Choice
	start  time.Time
	open   bool
	// measured is true if the response time of the current attempt was already reported to the load balancer. latency
	// is this response time.
	measured bool
	latency  time.Duration
	// firstByte is when the head of the endpoint's response arrived, or zero if the current attempt has no response.
	firstByte time.Time
	// connect is how long it took to open the connection of the last attempt. It is 0 for a connection that was open,
	// and negative if no connection could be opened.
	connect time.Duration
	// cookie is the Set-Cookie value of the session cookie, or empty if no cookie is set. If noCookie is true, the
	// response never sets a session cookie.
	cookie   string
	noCookie bool
	// pageStatus is the status to send to the client instead of the endpoint's status. If it is zero, the endpoint's
	// status is sent.
	pageStatus int
	// callStatus is the status of the controller's own error response to a gRPC call, which gets the status 200. It is
	// 0 for other responses.
	callStatus int
	// own is true if the body of the response comes from the controller itself.
	own bool
	// unavailable is true if the response is an error page that replaces a 503 of the controller itself.
	unavailable bool
	// atEnd holds the functions that Close calls.
	atEnd []func()
}

// Route describes one path of one host in the configuration. It is immutable.
type Route struct {
	// Host, Path and Type are the host, the path and the path type in the configuration.
	Host, Path, Type string
	// Origin is the Kubernetes object that defines the route, as "Kind/namespace/name".
	Origin string
	// Regex is the compiled path. It is nil if the path is not a regular expression.
	Regex *pattern.Pattern
	ir.RoutePolicy
}

// Submatch returns the indexes of the capture groups that the route's regular expression matches in path, like
// regexp.FindStringSubmatchIndex. It returns nil if the route has no regular expression.
func (r *Route) Submatch(path string) []int {
	if r.Regex == nil {
		return nil
	}
	return r.Regex.Submatch(path)
}

// Namespace returns the namespace of the backend. It returns an empty string if the request has no backend.
func (x *Exchange) Namespace() string {
	if x.Backend == nil {
		return ""
	}
	return x.Backend.Namespace()
}

// AtEnd registers a function that is called when the exchange ends. If the request was upgraded to another protocol,
// this is when the upgraded connection ends.
func (x *Exchange) AtEnd(fn func()) { x.atEnd = append(x.atEnd, fn) }

// Close ends the last attempt, if it is still open, and calls the functions that AtEnd has registered.
func (x *Exchange) Close() {
	x.End()
	for _, fn := range x.atEnd {
		fn()
	}
	x.atEnd = nil
}

// EndResponse is called when the handlers of a chain have returned, with their error, and before an error page or an
// error response is written. It calls the functions in ResponseEnds, the last one first, because it belongs to the
// Writer that was written to.
func (x *Exchange) EndResponse(err error) error {
	for _, fn := range slices.Backward(x.ResponseEnds) {
		err = fn(err)
	}
	x.ResponseEnds = nil
	return err
}

// Client returns the address of the client, and the scheme, host and port that the client requested. Headers from
// trusted proxies are taken into account.
func (x *Exchange) Client() *realip.Client {
	if !x.hasClient {
		x.client, x.hasClient = x.Clients.Of(x.Request), true
	}
	return &x.client
}

// ForwardedFor returns the value of the X-Forwarded-For header to send to the endpoint.
func (x *Exchange) ForwardedFor() string { return x.Clients.ForwardedFor(x.Request, x.Client()) }

// maxID is the maximum length, in bytes, of a request ID that a client may send.
const maxID = 128

// ID returns the request ID: the ID that the client sent, if it is safe to log, or else 32 random hexadecimal digits,
// as in nginx. If generating IDs is disabled and the client sent no ID, it returns an empty string.
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
