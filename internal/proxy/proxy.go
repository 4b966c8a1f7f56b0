// Package proxy sends requests to the endpoints of a backend, and their answers back. HTTP/1.1 it speaks itself, in the goroutine that
// the request has anyway and on connections that it keeps; gRPC is left to Go's HTTP/2, and FastCGI to package fastcgi.
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

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/http1"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/pools"
	"github.com/k8singress/k8singress/internal/reach"
)

// Forward sends a request to an endpoint, and answers with what that answers; secured is how TLS is spoken with it, and nil the usual
// way. While nothing has been written, an error is an *exchange.Failure with the status for the client. Later it wraps exchange.ErrCut,
// and the answer has been aborted.
func (p *Pool) Forward(x *exchange.Exchange, s *Settings, secured *Secured) error {
	x.Forwarded = true
	owned := requests.Get()
	r := owned.Value()
	r.Exchange, r.settings, r.pool, r.protocol = x, s, p, s.protocol(x)
	err := r.forward(secured)
	if !x.Kept {
		owned.Release()
	}
	return err
}

// requests are used again, but for those of exchanges that are kept.
var requests = pools.NewStructs[request]("proxy: request")

func (r *request) forward(secured *Secured) (err error) {
	if r.generation, err = r.pool.generation(r.protocol, secured); err != nil {
		return err
	}
	defer func() { r.body.close() }()
	if err = r.takeBody(); err == nil {
		r.prepareFields()
		err = r.try()
	}
	r.body.release()
	if err == nil && r.replaced != nil {
		return r.replaced
	}
	return err
}

// request is one request on its way through its endpoints.
type request struct {
	*exchange.Exchange
	settings   *Settings
	pool       *Pool
	protocol   ir.BackendProtocol
	generation *generation
	forwarded  forwarded
	body       *body
	begun      time.Time
	// asked counts the attempts.
	asked int
	// address is that of the endpoint of the attempt, and sent says that it may have got the request.
	address string
	sent    bool
	// replaced is set where the answer of an endpoint has not been passed on: the client is to get an error page.
	replaced *exchange.Failure
	// left is why the client had gone before the body was not wanted any more, if it had.
	left atomic.Pointer[error]
	// held is the context, for goroutines that may go on when the request is over.
	held context.Context //nolint:containedctx // It is the context of the request.
}

// gone returns why the client does not wait any more, or nil. What ends a read of the body may look like that later.
func (r *request) gone() error {
	if left := r.left.Load(); left != nil {
		return *left
	}
	return context.Cause(r.client())
}

// hold prepares for goroutines that may go on when the request is over: what is used again for the next one is none of theirs.
func (r *request) hold() { r.Kept, r.held = true, r.Context() }

// client is the context of the request.
func (r *request) client() context.Context {
	if r.held != nil {
		return r.held
	}
	return r.Context()
}

// halt has the body not read any more. A read that is under way ends soon.
func (r *request) halt(from *reading) {
	left := context.Cause(r.client())
	r.left.CompareAndSwap(nil, &left)
	from.halt(left != nil)
}

// stop is halt, and waits for the end of the read.
func (r *request) stop(from *reading) {
	if from != nil {
		r.halt(from)
		from.mu.Lock()
		from.mu.Unlock() //nolint:staticcheck // It was held by the read.
	}
}

// try asks endpoints until one of them answers.
func (r *request) try() error {
	var failed error
	for {
		if r.asked == 0 && r.settings.Total > 0 {
			r.begun = time.Now()
		}
		r.asked++
		var ok bool
		if r.address, ok = r.Next(); !ok {
			return cmp.Or[error](failed, exchange.Fail(http.StatusServiceUnavailable, ErrNoEndpoint))
		}
		r.sent = false
		r.left.Store(nil)
		var err error
		if r.protocol == ir.HTTP || r.protocol == ir.HTTPS {
			err = r.converse()
		} else {
			err = r.roundTrip()
		}
		again, err := r.judge(err)
		if !again {
			return err
		}
		failed = err
	}
}

// judge tells load balancing how the endpoint did, unless the client is the reason: nobody may have endpoints ejected that are well.
// It returns whether another endpoint is to be asked, and what the client is told if there is none.
func (r *request) judge(err error) (again bool, _ error) {
	switch {
	case err == nil:
		r.Done(false)
		return false, nil
	case errors.Is(err, errPassedOn):
		r.Done(false)
		return true, exchange.Fail(http.StatusBadGateway, err)
	case errors.Is(err, exchange.ErrCut):
		if !errors.Is(err, errNotTaken) && !errors.Is(err, errBroken) && r.gone() == nil {
			r.Done(true)
		}
		return false, fmt.Errorf("endpoint %s: %w", r.address, err)
	}
	kind, failed := r.explain(err)
	switch kind {
	case refused:
	case outOfReach:
		r.End()
	default:
		r.Done(true)
	}
	return r.again(kind), failed
}

// more says whether another endpoint may be asked at all.
func (r *request) more() bool {
	whole, _ := r.body.again()
	return whole && r.asked < r.settings.Tries && (r.settings.Total <= 0 || time.Since(r.begun) < r.settings.Total)
}

// again says whether another endpoint may be asked after a failure.
func (r *request) again(f failure) bool {
	if f == departed {
		// It was none any more: another one is the first.
		r.asked--
		return true
	}
	if f == outOfReach {
		return r.more()
	}
	return r.more() && r.settings.retry.allows(f) && (!r.sent || r.settings.retry.repeatable(r.Method))
}

// againFor is again for an answer with a status.
func (r *request) againFor(status int) bool {
	return r.settings.retry.allowsStatus(status) && r.more() && r.settings.retry.repeatable(r.Method)
}

// ErrNoEndpoint is for a backend that has nobody to ask.
var ErrNoEndpoint = errors.New("there is no endpoint")

var (
	// errPassedOn is for an answer that is not passed on, because another endpoint may have a better one.
	errPassedOn = errors.New("the answer has a status that another endpoint is asked for")
	// errBadRequest is for a request that cannot be written.
	errBadRequest = errors.New("the request cannot be written for the endpoint")
	// errInvalid is for answers that are no HTTP.
	errInvalid = errors.New("the answer is no HTTP")
	// errPanicked ends a transfer whose goroutine panicked.
	errPanicked = errors.New("the transfer failed because of a fault of the controller")
	// errNotTaken is for an answer that is cut off because of the client.
	errNotTaken = errors.New("the client does not take it")
)

// explain returns the kind of a failure, and what the client is told of it.
func (r *request) explain(err error) (failure, error) {
	status, kind := http.StatusBadGateway, failedByError
	var invalid *http1.Error
	var ours *exchange.Failure
	var closed *reach.Refusal
	switch gone := r.gone(); {
	case errors.As(err, &ours):
		return refused, err
	case errors.Is(err, errBroken):
		return refused, readFailed(gone, err)
	case gone != nil:
		return refused, exchange.Fail(clientGone, gone)
	case errors.Is(err, errBadRequest):
		status, kind = http.StatusBadRequest, refused
	case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
		// It is ours, and not the endpoint's.
		status, kind = http.StatusServiceUnavailable, refused
	case errors.As(err, &closed):
		status, kind = http.StatusServiceUnavailable, outOfReach
	case errors.Is(err, errGone):
		status, kind = http.StatusServiceUnavailable, departed
	case isTimeout(err):
		status, kind = http.StatusGatewayTimeout, failedByTimeout
	case errors.Is(err, errInvalid) || errors.As(err, &invalid):
		kind = failedByInvalid
	}
	return kind, exchange.Fail(status, fmt.Errorf("endpoint %s: %w", r.address, err))
}

// clientGone is what nginx writes into its log for a client that does not wait for the answer.
const clientGone = 499

// isTimeout tells an endpoint that takes too long from one that fails.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
