package k8singress

import (
	"errors"
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/proxy"
)

// retryAfter is how many seconds a client should wait for the first complete configuration.
const retryAfter = "1"

var (
	errNoHost   = errors.New("no Ingress has this host")
	errNoPath   = errors.New("the request line has no path")
	errHost     = errors.New("the host is neither a name nor an address")
	errPath     = errors.New("the path has a NUL in it")
	errFields   = errors.New("the request has too many header fields")
	errLength   = errors.New("the length of the body is not what the request says")
	errTwice    = errors.New("the request has two Authorization headers")
	errExpected = errors.New("the request expects something that is not known")
	errMethod   = errors.New("the method is not served: CONNECT and TRACE are for others")
	errSwitch   = errors.New("a WebSocket handshake cannot have a body")
	errLoop     = errors.New("the request has come through here too often: does a Service of type ExternalName lead back?")
)

// serve lets the table answer, whoever has read the request. With an error nothing has been written, unless it is exchange.ErrCut; nor
// with live.NoHost, which says that no Ingress asks for the request.
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

// validHost reports whether a request may name a host. It may name none: a client of HTTP/1.0 does not have to.
func validHost(host string) bool {
	return host == "" || message.ValidHost(host)
}

// refuse returns an error for requests that no Ingress could mean: a tunnel, a request for "*" or for something like
// "x:admin", which has no path that Ingresses could look at, a path with a NUL in it, and one that goes round in circles. What
// package http1 refuses of HTTP/1.1 is refused here of the other versions, which the servers of Go read.
func refuse(r *message.Request) error {
	switch {
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		return exchange.Fail(http.StatusMethodNotAllowed, errMethod)
	case !validHost(r.Host):
		return exchange.Fail(http.StatusBadRequest, errHost)
	case !strings.HasPrefix(r.Path, "/"):
		return exchange.Fail(http.StatusBadRequest, errNoPath)
	case strings.IndexByte(r.Path, 0) >= 0:
		return exchange.Fail(http.StatusBadRequest, errPath)
	case len(r.Fields) > message.MostFields:
		return exchange.Fail(http.StatusRequestHeaderFieldsTooLarge, errFields)
	case r.MisstatesLength():
		return exchange.Fail(http.StatusBadRequest, errLength)
	case r.Major > 1 && r.Fields.Count(message.Authorization) > 1:
		return exchange.Fail(http.StatusBadRequest, errTwice)
	case r.Body != nil && r.IsWebSocket():
		// The client may switch protocols only after its whole request (RFC 9110 7.8), and an endpoint switches after its head.
		return exchange.Fail(http.StatusBadRequest, errSwitch)
	case r.Expects():
		return exchange.Fail(http.StatusExpectationFailed, errExpected)
	case proxy.Loops(r):
		return exchange.Fail(http.StatusLoopDetected, errLoop)
	}
	return nil
}
