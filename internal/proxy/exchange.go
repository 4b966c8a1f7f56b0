package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/fastcgi"
)

// Endpoints are those that a request may be sent to, one after the other.
type Endpoints interface {
	// Next returns the address of another one, or false if there is none.
	Next() (address string, ok bool)
	// Answered tells that the head of its answer is there, which is all that says how fast it is: the rest may be a stream that
	// never ends. It is what the endpoint was waited for since a time; zero is since Next.
	Answered(since time.Time)
	// Listed returns what tells, from any goroutine, whether the one of the last Next is still an endpoint.
	Listed() func() bool
	// Variable returns the value of an nginx variable for the request.
	Variable(name string) string
	// Done tells how the one of the last Next did. It is not called where the client is the reason that there is no answer.
	Done(failed bool)
}

// Exchange is one request on its way through its endpoints. Both ways of proxying work on it: Forward, and Transport inside
// of Caddy's reverse_proxy.
type Exchange struct {
	settings  *Settings
	endpoints Endpoints
	told      told
	// transports are those of the route, by protocol; nil is those of the pool.
	transports transports
	// cgi are the parameters of FastCGI that do not come from headers.
	cgi  []fastcgi.Param
	body *body
	// rest is a body that is not kept, and of which the beginning stands in a file.
	rest  *body
	begun time.Time
	// asked counts the attempts.
	asked int
	// failed is the last failure, in the words for the log, with the status for the client.
	failed error
}

// NewExchange prepares a request.
func NewExchange(s *Settings, endpoints Endpoints) *Exchange {
	return &Exchange{settings: s, endpoints: endpoints}
}

// Next is Endpoints.Next.
func (x *Exchange) Next() (string, bool) {
	if x.asked == 0 && x.settings.Total > 0 {
		x.begun = time.Now()
	}
	x.asked++
	return x.endpoints.Next()
}

// more says whether another endpoint may be asked at all.
func (x *Exchange) more() bool {
	return x.asked < x.settings.Tries && (x.settings.Total <= 0 || time.Since(x.begun) < x.settings.Total)
}

// again says whether another endpoint may be asked after a failure. sent says that the endpoint may have got the request.
func (x *Exchange) again(method string, f failure, sent bool) bool {
	if f == departed {
		// It was none any more: another one is the first.
		x.asked--
		return true
	}
	return x.more() && x.settings.retry.allows(f) && (!sent || x.settings.retry.repeatable(method))
}

// againFor is again for an answer with a status.
func (x *Exchange) againFor(method string, status int) bool {
	return x.more() && x.settings.retry.allowsStatus(status) && x.settings.retry.repeatable(method)
}

// Failure is the last failure as an error with a status for the client, or nil.
func (x *Exchange) Failure() error { return x.failed }

var errNoEndpoint = errors.New("there is no endpoint")

// fail notes a failure of an attempt, and returns its kind.
func (x *Exchange) fail(ctx context.Context, address string, err error) failure {
	status, kind := http.StatusBadGateway, failedByError
	switch {
	case errors.Is(err, errBroken):
		x.failed = readFailed(ctx, err)
		return refused
	case ctx.Err() != nil:
		x.failed = caddyhttp.Error(clientGone, context.Cause(ctx))
		return refused
	case errors.Is(err, errBadRequest):
		status, kind = http.StatusBadRequest, refused
	case errors.Is(err, errGone):
		status, kind = http.StatusServiceUnavailable, departed
	case isTimeout(err):
		status, kind = http.StatusGatewayTimeout, failedByTimeout
	case errors.Is(err, errInvalid):
		kind = failedByInvalid
	}
	x.failed = caddyhttp.Error(status, fmt.Errorf("endpoint %s: %w", address, err))
	return kind
}

// clientGone is what nginx writes into its log for a client that does not wait for the answer.
const clientGone = 499

// isTimeout tells an endpoint that takes too long from one that fails.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// errInvalid is for answers that are no HTTP.
var errInvalid = errors.New("the answer is no HTTP")

// Close lets go of what is kept of the request.
func (x *Exchange) Close() {
	for _, b := range [...]*body{x.body, x.rest} {
		if b != nil {
			b.close()
		}
	}
}
