// Package exchange holds one request on its way through filters to an endpoint, and its answer. Filters, balancing and proxying
// work on it, whatever version of HTTP the client speaks, and whichever server reads it from the connection.
package exchange

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/mtls"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/pattern"
	"github.com/k8singress/k8singress/internal/realip"
)

// Exchange is for the goroutine that serves the request, and for no longer than that takes.
type Exchange struct {
	*message.Request
	// Route is what the request has matched.
	Route *Route
	// Backend has the endpoints; it is nil for a route that answers by itself.
	Backend *balancer.Backend
	// Clients and Global are what the options say at the time of the request.
	Clients *realip.Policy
	Global  *ir.Global
	// Headers is what they say of header fields; nil is nothing.
	Headers *Headers
	// Peer is who the certificate of the connection is of; it is nil on hosts that ask for none.
	Peer *mtls.Client
	// Writer takes the answer. Filters and proxying write its head by Head, so that changes take effect.
	Writer message.Writer

	// Always are changes to each answer, to errors as well.
	Always Changes
	// Leave has the client leave the connection after the answer, unless it switches to another protocol.
	Leave bool
	// PassesOn says that a request that no route is for is left to others.
	PassesOn bool
	// Left are fields that a handler of Caddy wants in the answer to the error that it has returned, such as WWW-Authenticate.
	Left message.Fields
	// Status is that of the answer, once its head has been written.
	Status int
	// Prepare makes a request one that handlers of Caddy can serve; nil where it is one.
	Prepare func(w http.ResponseWriter, r *http.Request) *http.Request

	// ForEndpoint are fields that the endpoint gets besides those of the client.
	ForEndpoint message.Fields
	// Replaced are the statuses of answers of endpoints that do not reach the client: forwarding ends with ErrReplaced then.
	Replaced []int
	// Pages are the statuses that the client gets an error page for where the controller itself answers with them.
	Pages []int
	// Forwarded says that the request has got past all filters. Until then, whatever refuses it may be there to keep clients out.
	Forwarded bool
	// Hidden is the failure that the client is not told of, because it gets an error page.
	Hidden error

	// Span is that of OpenTelemetry; nil is none.
	Span trace.Span

	// Kept says that the exchange may be held by something that outlives the request, such as a handler of Caddy.
	Kept bool

	// changes begin in firstChanges, which is enough for most requests.
	changes      Changes
	firstChanges [4]*message.Changes
	// client is who the request comes from, once Client was called.
	client     realip.Client
	identified bool
	// id is known once ID was called.
	id    string
	named bool

	// tried begins in first, which is enough for most requests.
	tried []*balancer.Endpoint
	first [2]*balancer.Endpoint
	// ended has what came of those that are over. It begins in firstEnded.
	ended      []Attempt
	firstEnded [2]Attempt
	// answered is the status of the endpoint that has answered last, until its attempt is over.
	answered int
	// choice is the attempt under way since began, while open is set.
	choice balancer.Choice
	began  time.Time
	open   bool
	// measured says that it has been told how fast the endpoint is.
	measured bool
	// cookie is the value of the session cookie that the answer sets. With noCookie it sets none.
	cookie   string
	noCookie bool
	// fixed is the status of the answer, whatever the endpoint says; zero is what that says.
	fixed int
	// atEnd is called by Close.
	atEnd []func()
}

// Route is what requests with one path of one host meet. It is immutable.
type Route struct {
	// Host, Path and Type are as in the document.
	Host, Path, Type string
	// Origin is the object that the route comes from, as "Kind/namespace/name".
	Origin string
	// Regex is nil for a route of another type.
	Regex *pattern.Pattern
	// Unlogged keeps its requests out of the access log.
	Unlogged bool
}

// Submatch returns where the route's regular expression matches path, as regexp.FindStringSubmatchIndex does; it is nil
// if the route has none.
func (r *Route) Submatch(path string) []int {
	if r.Regex == nil {
		return nil
	}
	return r.Regex.Submatch(path)
}

// Namespace returns the namespace of the backend. It is empty for a request without one.
func (x *Exchange) Namespace() string {
	if x.Backend == nil {
		return ""
	}
	return x.Backend.Namespace()
}

// AtEnd has a function called when the exchange is over, and the stream that it may have become.
func (x *Exchange) AtEnd(fn func()) { x.atEnd = append(x.atEnd, fn) }

// Close says that the exchange is over. Whatever has happened, its last attempt does not stay under way.
func (x *Exchange) Close() {
	x.End()
	for _, fn := range x.atEnd {
		fn()
	}
	x.atEnd = nil
}

// Client tells who the request comes from.
func (x *Exchange) Client() *realip.Client {
	if !x.identified {
		x.client, x.identified = x.Clients.Of(x.Request), true
	}
	return &x.client
}

// ForwardedFor is what an endpoint gets for X-Forwarded-For.
func (x *Exchange) ForwardedFor() string { return x.Clients.ForwardedFor(x.Request, x.Client()) }

// longestID is how long an id may be that a client gives its request.
const longestID = 128

// ID is that of the request, in whatever is said of it: the one that the client gave if it can stand in a log, else 32 hexadecimal
// digits as nginx makes them, or nothing where the options say so.
func (x *Exchange) ID() string {
	if x.named {
		return x.id
	}
	x.named = true
	if given, ok := x.Fields.Lookup(message.XRequestID); ok && validID(given) && x.Fields.Count(message.XRequestID) == 1 {
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
	if id == "" || len(id) > longestID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Hash implements balancer.Asker.
func (x *Exchange) Hash(t *nginx.Template) string { return t.Expand(x.Variable) }

// Cookie implements balancer.Asker.
func (x *Exchange) Cookie(name string) string {
	value, _ := x.Request.Cookie(name)
	return value
}

// ClientIP implements balancer.Asker.
func (x *Exchange) ClientIP() string { return x.Client().IP }
