package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Settings holds an ir.Proxy, and the values that NewSettings has parsed from it, so that they are not parsed for each
// request. It is immutable.
type Settings struct {
	ir.Proxy
	retry retry
	// host is the template for the Host header of requests to endpoints. If it is nil, the requests have the Host
	// header of the client.
	host *nginx.Template
	// params are the FastCGI parameters: nginx's defaults, and the configured parameters in Params. They are set only
	// if the endpoints speak FastCGI.
	params []param
	edits  edits
}

// protocol returns the protocol that the endpoint of a request speaks.
func (s *Settings) protocol(x *exchange.Exchange) ir.BackendProtocol {
	switch {
	case s.Protocol == "":
		return ir.HTTP
	case s.Protocol != ir.AutoHTTP:
		return s.Protocol
	case x.TLS() != nil:
		return ir.HTTPS
	}
	return ir.HTTP
}

// NewSettings returns the Settings for p. It validates p, because p is part of the JSON configuration, which may be
// written by hand.
func NewSettings(p ir.Proxy) (*Settings, error) {
	s := &Settings{Proxy: p}
	s.StreamRequest = s.StreamRequest || s.Protocol == ir.GRPC || s.Protocol == ir.GRPCS
	if s.Connect <= 0 || s.Read <= 0 || s.Write <= 0 {
		return nil, errors.New("connect_timeout, read_timeout and write_timeout must be greater than zero")
	}
	if s.MaxBody <= 0 && s.MaxBody != ir.NoLimit {
		return nil, fmt.Errorf("max_body must be greater than zero, or %d for no limit", ir.NoLimit)
	}
	var err error
	if s.retry, err = newRetry(p.On); err != nil {
		return nil, fmt.Errorf("retry_on: %w", err)
	}
	if s.speaksCGI() {
		if s.params, err = paramsOf(p.Params); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	if p.Host != "" {
		if s.host, err = exchange.ParseTemplate(p.Host); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
	}
	if s.edits, err = newEdits(&p.Forwarding); err != nil {
		return nil, err
	}
	return s, nil
}

// closes reports whether requests ask the endpoint to close the connection after the response.
func (s *Settings) closes() bool { return s.Connection == "close" }

// retry holds the conditions under which a failed request is sent to another endpoint, as in nginx's
// proxy_next_upstream.
type retry struct {
	onError, onTimeout, onInvalid, nonIdempotent bool
	statuses                                     []int
}

var retryStatuses = map[ir.RetryOn]int{
	ir.RetryOn500: http.StatusInternalServerError, ir.RetryOn502: http.StatusBadGateway,
	ir.RetryOn503: http.StatusServiceUnavailable, ir.RetryOn504: http.StatusGatewayTimeout,
	ir.RetryOn403: http.StatusForbidden, ir.RetryOn404: http.StatusNotFound, ir.RetryOn429: http.StatusTooManyRequests,
}

// newRetry parses the conditions under which another endpoint is tried.
func newRetry(conditions []ir.RetryOn) (retry, error) {
	var r retry
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
				return r, fmt.Errorf("unknown condition %q", c)
			}
			r.statuses = append(r.statuses, status)
		}
	}
	return r, nil
}

// failure says why an attempt to send a request to an endpoint failed.
type failure int

const (
	failedByError failure = iota
	failedByTimeout
	failedByInvalid
	// endpointRemoved means that the endpoint was removed from the backend before a connection was opened.
	endpointRemoved
	// addressForbidden means that the controller may not connect to the address of the endpoint. This is no failure of
	// the endpoint, and another endpoint may be tried.
	addressForbidden
	// nameRejected means that the TLS handshake failed for a server name that contains variables. The client may have
	// chosen the name, so this is no failure of the endpoint. Another endpoint may be tried as after an error.
	nameRejected
	// notRetried means that the endpoint did not cause the failure and that the request must not be retried.
	notRetried
)

// allows reports whether another endpoint may be tried after a failure f.
func (r *retry) allows(f failure) bool {
	switch f {
	case failedByError, nameRejected:
		return r.onError
	case failedByTimeout:
		return r.onTimeout
	case failedByInvalid:
		return r.onInvalid
	case endpointRemoved, addressForbidden, notRetried:
	}
	return false
}

// allowsStatus reports whether another endpoint may be tried after a response with this status.
func (r *retry) allowsStatus(status int) bool { return slices.Contains(r.statuses, status) }

// repeatable reports whether a request may be sent again after an endpoint may have received it. As in nginx, POST,
// LOCK and PATCH requests are not repeated unless non_idempotent is set.
func (r *retry) repeatable(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return r.nonIdempotent
	}
	return true
}
