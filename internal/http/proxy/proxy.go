// Package proxy forwards requests to the endpoints of a backend and returns their responses. HTTP/1.1 is implemented
// here: it uses the goroutine of the request and a pool of kept-alive connections. gRPC uses Go's HTTP/2 client, and
// FastCGI uses package fastcgi.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pools"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// Forward forwards a request to an endpoint and writes the endpoint's response to the client. secured is the TLS
// configuration for connections to the endpoint; nil selects the default configuration. If Forward fails before
// anything has been written to the client, it returns an *exchange.Failure with the status code for the client. If it
// fails later, it aborts the response and returns an error that wraps exchange.ErrAborted.
func (p *Pool) Forward(x *exchange.Exchange, s *Settings, secured *Secured) error {
	x.Forwarded = true
	owned := requests.Get()
	r := owned.Value()
	r.Exchange, r.settings, r.pool, r.protocol = x, s, p, s.protocol(x)
	err := r.forward(secured)
	if !x.Retained {
		owned.Release()
	}
	return err
}

// requests is a pool of request structs. A request struct is not returned to the pool if its exchange is marked as
// retained, because goroutines that outlive the request may still use the struct.
var requests = pools.NewStructs[request]("proxy: request")

func (r *request) forward(secured *Secured) (err error) {
	if err = r.chooseTLSClient(secured); err != nil {
		return err
	}
	defer func() { r.body.close() }()
	if err = r.readBody(); err == nil {
		r.prepareFields()
		if err = r.checkVariables(); err == nil {
			err = r.try()
		}
	}
	r.Received += r.body.received()
	r.body.release()
	if err == nil && r.replaced != nil {
		return r.replaced
	}
	return err
}

// request holds the state of one request while it is forwarded.
type request struct {
	*exchange.Exchange
	settings  *Settings
	pool      *Pool
	protocol  ir.BackendProtocol
	tlsClient *tlsClient
	// nameVaries is true if the server name for the endpoint contains variables.
	nameVaries bool
	forwarded  forwarded
	body       *body
	start      time.Time
	// attempts is the number of attempts, including the current one.
	attempts int
	// address is the address of the endpoint of the current attempt. sent is true if the endpoint may have received the
	// request.
	address string
	sent    bool
	// replaced is set if the endpoint's response was discarded, because the client gets an error page instead. Forward
	// then returns this error.
	replaced *exchange.Failure
	// goneAtStop is set when reading of the request body is stopped. It points to the reason why the client had already
	// disconnected at that time, or to a nil error if the client was still connected.
	goneAtStop atomic.Pointer[error]
	// heldContext is the request's context, for goroutines that may outlive the request.
	heldContext context.Context //nolint:containedctx // It is the context of the request.
}

// gone returns the reason why the client no longer waits for the response, or nil if the client still waits. Once
// reading of the request body was stopped, gone returns the reason that was recorded before the stop, because the stop
// itself may cancel the context as if the client had disconnected.
func (r *request) gone() error {
	if left := r.goneAtStop.Load(); left != nil {
		return *left
	}
	return context.Cause(r.client())
}

// hold prevents r and its exchange from being reused for another request, because goroutines that use them may still
// run when this request has ended.
func (r *request) hold() { r.Retained, r.heldContext = true, r.Context() }

// r.client() returns the context of the client's request. It may be called by goroutines that outlive the request.
func (r *request) client() context.Context {
	if r.heldContext != nil {
		return r.heldContext
	}
	return r.Context()
}

// stopReading stops reading the request body. It does not wait for a read in progress, which returns soon.
func (r *request) stopReading(from *bodyReader) {
	left := context.Cause(r.client())
	r.goneAtStop.CompareAndSwap(nil, &left)
	from.stop(left != nil)
}

// stopReadingAndWait is like stopReading, but waits until a read in progress has returned.
func (r *request) stopReadingAndWait(from *bodyReader) {
	if from != nil {
		r.stopReading(from)
		from.mu.Lock()
		from.mu.Unlock() //nolint:staticcheck // The read holds the lock until it returns.
	}
}

// try sends the request to endpoints until one of them responds or no further attempt is allowed.
func (r *request) try() error {
	var failed error
	for {
		if r.attempts == 0 && r.settings.Total > 0 {
			r.start = time.Now()
		}
		r.attempts++
		var ok bool
		if r.address, ok = r.Next(); !ok {
			return cmp.Or[error](failed, exchange.Fail(http.StatusServiceUnavailable, ErrNoEndpoint))
		}
		r.sent = false
		r.goneAtStop.Store(nil)
		var err error
		if r.protocol == ir.HTTP || r.protocol == ir.HTTPS {
			err = r.roundTripHTTP1()
		} else {
			err = r.roundTripNetHTTP()
		}
		again, err := r.finishAttempt(err)
		if !again {
			return err
		}
		failed = err
	}
}

// finishAttempt reports the result of an attempt to the load balancer. It does not report failures that the client
// caused, because a client must not be able to cause the ejection of healthy endpoints. It returns whether to try
// another endpoint, and the error for the client if there is no other endpoint.
func (r *request) finishAttempt(err error) (again bool, _ error) {
	switch {
	case err == nil:
		r.Done(false)
		return false, nil
	case errors.Is(err, errTryNext):
		r.Done(false)
		return true, exchange.Fail(http.StatusBadGateway, err)
	case errors.Is(err, exchange.ErrAborted):
		if !errors.Is(err, errClientWrite) && !errors.Is(err, errClientBody) && r.gone() == nil {
			r.Done(true)
		}
		return false, fmt.Errorf("endpoint %s: %w", r.address, err)
	}
	if opening := (dialFailed{}); errors.As(err, &opening) {
		r.Unconnected()
	}
	kind, failed := r.classify(err)
	switch kind {
	case notRetried:
	case addressForbidden, nameRejected:
		r.End()
	default:
		r.Failed(exchange.StatusOf(failed))
	}
	return r.retryAllowed(kind), failed
}

// attemptsLeft reports whether the limits allow another attempt: the number of tries, the time for all tries, and
// whether the request body can be sent again.
func (r *request) attemptsLeft() bool {
	whole, _ := r.body.canResend()
	return whole && r.attempts < r.settings.Tries && (r.settings.Total <= 0 || time.Since(r.start) < r.settings.Total)
}

// retryAllowed reports whether another endpoint may be tried after a failure.
func (r *request) retryAllowed(f failure) bool {
	if f == endpointRemoved {
		// The endpoint had already been removed from the backend, so this attempt does not use up a try.
		r.attempts--
		return true
	}
	if f == addressForbidden {
		return r.attemptsLeft()
	}
	return r.attemptsLeft() && r.settings.retry.allows(f) && (!r.sent || r.settings.retry.repeatable(r.Method))
}

// retryAllowedFor reports whether another endpoint may be tried after a response with the given status.
func (r *request) retryAllowedFor(status int) bool {
	return r.settings.retry.allowsStatus(status) && r.attemptsLeft() && r.settings.retry.repeatable(r.Method)
}

// ErrNoEndpoint is the error for a backend without available endpoints.
var ErrNoEndpoint = errors.New("the backend has no available endpoint")

var (
	// errTryNext means that the response was not forwarded to the client, because its status is a configured reason to
	// try another endpoint.
	errTryNext = errors.New("the endpoint returned a status for which the request is retried at another endpoint")
	// errBadRequest means that the request cannot be encoded for the endpoint.
	errBadRequest = errors.New("the request cannot be sent to the endpoint")
	// errInvalid means that the response is not valid HTTP.
	errInvalid = errors.New("the response is not valid HTTP")
	// errPanicked is the error of a body transfer whose goroutine has panicked.
	errPanicked = errors.New("the transfer was aborted because the controller panicked")
	// errClientWrite means that the response could not be written to the client.
	errClientWrite = errors.New("writing to the client failed")
)

// classify returns the kind of failure that err represents, which decides whether another endpoint may be tried, and
// the error for the client.
func (r *request) classify(err error) (failure, error) {
	status, kind := http.StatusBadGateway, failedByError
	var invalid *http1.Error
	var ours *exchange.Failure
	var closed *reach.Refusal
	switch gone := r.gone(); {
	case errors.As(err, &ours):
		return notRetried, err
	case errors.Is(err, errClientBody):
		return notRetried, readFailed(gone, err)
	case gone != nil:
		return notRetried, exchange.Fail(exchange.ClientGone, gone)
	case errors.Is(err, errBadRequest):
		status, kind = http.StatusBadRequest, notRetried
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		// This process has run out of file descriptors, so the endpoint did not cause the failure.
		status, kind = http.StatusServiceUnavailable, notRetried
	case errors.As(err, &closed):
		status, kind = http.StatusServiceUnavailable, addressForbidden
	case errors.Is(err, errRemoved):
		status, kind = http.StatusServiceUnavailable, endpointRemoved
	case isTimeout(err):
		status, kind = http.StatusGatewayTimeout, failedByTimeout
	case errors.Is(err, errInvalid) || errors.As(err, &invalid):
		kind = failedByInvalid
	case r.nameVaries && errors.As(err, &handshakeFailed{}):
		kind = nameRejected
	}
	return kind, exchange.Fail(status, fmt.Errorf("endpoint %s: %w", r.address, err))
}

// isTimeout reports whether an error is or wraps a network timeout.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
