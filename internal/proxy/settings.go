package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// Settings are how a request is handed to an endpoint, and when another one is asked. They are immutable.
type Settings struct {
	// Connect is for a new connection; Read and Write are for times in which nothing comes in or goes out.
	Connect, Read, Write time.Duration
	// Tries counts the first one. Total is how long after the request another one may follow; zero is no limit.
	Tries int
	Total time.Duration
	// Retry is what lets another one follow.
	Retry Retry

	Protocol ir.BackendProtocol
	// Host is the Host header for the endpoint; nil is the client's.
	Host *nginx.Template
	// Close asks the endpoint to close the connection after its answer.
	Close bool
	// MaxBody is how many bytes the body of a request may have; less than zero is no limit.
	MaxBody int64
	// StreamRequest sends the body on as it comes in; otherwise all of it is read before an endpoint is asked.
	StreamRequest bool
	// BufferResponse takes an answer off the endpoint as fast as it comes.
	BufferResponse bool
	// Prefix is the X-Forwarded-Prefix header.
	Prefix string
	// Index is the file that a path with a slash at its end means to FastCGI.
	Index string
	// Params are the parameters that FastCGI is told, besides headers.
	Params []param
}

// Retry is what nginx's proxy_next_upstream says.
type Retry struct {
	onError, onTimeout, onInvalid, nonIdempotent bool
	statuses                                     []int
}

var retryStatuses = map[ir.RetryOn]int{
	ir.RetryOn500: http.StatusInternalServerError, ir.RetryOn502: http.StatusBadGateway,
	ir.RetryOn503: http.StatusServiceUnavailable, ir.RetryOn504: http.StatusGatewayTimeout,
	ir.RetryOn403: http.StatusForbidden, ir.RetryOn404: http.StatusNotFound, ir.RetryOn429: http.StatusTooManyRequests,
}

// NewRetry reads a list of conditions.
func NewRetry(conditions []ir.RetryOn) (Retry, error) {
	var r Retry
	for _, c := range conditions {
		switch c {
		case ir.RetryOnError:
			r.onError = true
		case ir.RetryOnTimeout:
			r.onTimeout = true
		case ir.RetryOnInvalidHeader:
			r.onInvalid = true
		case ir.RetryNonIdempotent:
			r.nonIdempotent = true
		default:
			status, ok := retryStatuses[c]
			if !ok {
				return r, fmt.Errorf("there is no condition %q", c)
			}
			r.statuses = append(r.statuses, status)
		}
	}
	return r, nil
}

// failure is how an attempt went wrong.
type failure int

const (
	noFailure failure = iota
	failedByError
	failedByTimeout
	failedByInvalid
	// departed is for an endpoint that was none any more when it should have been asked.
	departed
	// refused is for what is no failure of the endpoint: it must not be repeated.
	refused
)

// allows says whether another endpoint may be asked after a failure.
func (r *Retry) allows(f failure) bool {
	switch f {
	case failedByError:
		return r.onError
	case failedByTimeout:
		return r.onTimeout
	case failedByInvalid:
		return r.onInvalid
	case noFailure, departed, refused:
	}
	return false
}

// allowsStatus says whether another endpoint may be asked after an answer with this status.
func (r *Retry) allowsStatus(status int) bool { return slices.Contains(r.statuses, status) }

// repeatable says whether a request may be sent again when an endpoint may have got it: nginx's rule, which leaves out POST,
// LOCK and PATCH.
func (r *Retry) repeatable(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return r.nonIdempotent
	}
	return true
}
