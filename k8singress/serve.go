package k8singress

import (
	"errors"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/proxy"
)

// retryAfter is the value, in seconds, of the Retry-After header that clients get until the first configuration is
// loaded, and if the memory budget for requests is exhausted.
const retryAfter = "1"

var (
	errNoHost    = exchange.Fail(http.StatusNotFound, errors.New("no Ingress has this host"))
	errNoRule    = exchange.Fail(http.StatusNotFound, errors.New("no Ingress of the host has this path"))
	errNoPath    = errors.New("the request line has no path")
	errHost      = errors.New("the host is neither a host name nor an IP address")
	errPath      = errors.New("the path contains a NUL, or the request target contains a space")
	errFields    = errors.New("the request has too many header fields")
	errLength    = errors.New("the length of the body differs from Content-Length")
	errNominated = errors.New("the Connection header lists too many names")
	errTwice     = errors.New("the request has two Authorization headers")
	errExpected  = errors.New("the Expect header has an unsupported value")
	errMethod    = errors.New("CONNECT and TRACE are not supported")
	errPanicked  = errors.New("a handler has panicked: the log has its stack trace")
	errSwitch    = errors.New("a WebSocket handshake cannot have a body")
	errLoop      = errors.New(
		"the request has passed through this controller too often: check whether a Service of type ExternalName " +
			"leads back to it")
)

// serve validates a request and serves it from the routing table. It is used for requests from all HTTP servers. No
// response has been written yet if serve returns the outcome live.NoHost (no Ingress matches), or an error other than
// exchange.ErrAborted.
func serve(table *live.Table, x *exchange.Exchange) (live.Outcome, error) {
	if err := refuse(x.Request); err != nil {
		return live.Served, err
	}
	outcome, err := table.Serve(x)
	if outcome == live.NotReady {
		return outcome, exchange.Fail(http.StatusServiceUnavailable, engine.ErrNotReady)
	}
	return outcome, err
}

// noHost returns the error of a request that matches no Ingress.
func noHost(x *exchange.Exchange) error {
	if x.KnownHost {
		return errNoRule
	}
	return errNoHost
}

// validHost reports whether the host of a request is valid. An empty host is valid, because HTTP/1.0 clients may omit
// it.
func validHost(host string) bool {
	return host == "" || message.ValidHost(host)
}

// hasBadPath reports whether the path contains a NUL byte, or the request target contains a space. Spaces are not valid
// in a target, because in HTTP/1.1 a space ends the target.
func hasBadPath(r *message.Request) bool {
	return strings.IndexByte(r.Path, 0) >= 0 || r.Major > 1 && strings.IndexByte(r.Target, ' ') >= 0
}

// refuse returns an error for a request that cannot be served: a CONNECT or TRACE request, a request target without a
// path (such as "*" or "x:admin"), a path with a NUL byte, or a request that has passed through this controller too
// many times. HTTP/2 and HTTP/3 requests, which Go's servers have parsed, also get the checks that package http1 makes
// for HTTP/1.1 requests.
func refuse(r *message.Request) error {
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return exchange.Fail(http.StatusMethodNotAllowed, errMethod)
	case !validHost(r.Host):
		return exchange.Fail(http.StatusBadRequest, errHost)
	case !strings.HasPrefix(r.Path, "/"):
		return exchange.Fail(http.StatusBadRequest, errNoPath)
	case hasBadPath(r):
		return exchange.Fail(http.StatusBadRequest, errPath)
	case len(r.Fields) > message.MaxFields:
		return exchange.Fail(http.StatusRequestHeaderFieldsTooLarge, errFields)
	case r.NominatesTooMany:
		return exchange.Fail(http.StatusBadRequest, errNominated)
	case r.HasInvalidLength():
		return exchange.Fail(http.StatusBadRequest, errLength)
	case r.Major > 1 && r.Fields.Count(message.Authorization) > 1:
		return exchange.Fail(http.StatusBadRequest, errTwice)
	case r.Body != nil && r.IsWebSocket():
		// Reject upgrade requests that have a body. RFC 9110 section 7.8 allows the protocol switch only after the
		// whole request was received, but endpoints switch right after they have sent the head of their response.
		return exchange.Fail(http.StatusBadRequest, errSwitch)
	case r.HasUnsupportedExpect():
		return exchange.Fail(http.StatusExpectationFailed, errExpected)
	case proxy.Loops(r):
		return exchange.Fail(http.StatusLoopDetected, errLoop)
	}
	return nil
}
