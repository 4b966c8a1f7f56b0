package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// Settings are an ir.Proxy with its defaults, and what is read of it once, for all requests. They are immutable.
type Settings struct {
	ir.Proxy
	retry retry
	// host is nil for the client's.
	host *nginx.Template
	// params are those of nginx and Params, for endpoints that speak FastCGI.
	params []param
	edits  edits
}

// protocol is what the endpoint of a request speaks.
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

// NewSettings returns the Settings of a document, or what is wrong with it: a document may have been written by hand.
func NewSettings(p ir.Proxy) (*Settings, error) {
	s := &Settings{Proxy: p}
	s.StreamRequest = s.StreamRequest || s.Protocol == ir.GRPC || s.Protocol == ir.GRPCS
	if s.Connect <= 0 || s.Read <= 0 || s.Write <= 0 {
		return nil, errors.New("connect_timeout, read_timeout and write_timeout must be above zero")
	}
	if s.MaxBody <= 0 && s.MaxBody != ir.NoLimit {
		return nil, fmt.Errorf("max_body must be above zero, or %d for no limit", ir.NoLimit)
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
		if s.host, err = nginx.ParseTemplate(p.Host); err != nil {
			return nil, fmt.Errorf("host: %w", err)
		}
	}
	if s.edits, err = newEdits(&p.Forwarding); err != nil {
		return nil, err
	}
	return s, nil
}

// closes says that endpoints are asked to close the connection after their answer.
func (s *Settings) closes() bool { return s.Connection == "close" }

// retry is what nginx's proxy_next_upstream says.
type retry struct {
	onError, onTimeout, onInvalid, nonIdempotent bool
	statuses                                     []int
}

var retryStatuses = map[ir.RetryOn]int{
	ir.RetryOn500: http.StatusInternalServerError, ir.RetryOn502: http.StatusBadGateway,
	ir.RetryOn503: http.StatusServiceUnavailable, ir.RetryOn504: http.StatusGatewayTimeout,
	ir.RetryOn403: http.StatusForbidden, ir.RetryOn404: http.StatusNotFound, ir.RetryOn429: http.StatusTooManyRequests,
}

// newRetry reads a list of conditions.
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
	failedByError failure = iota
	failedByTimeout
	failedByInvalid
	// departed is for an endpoint that was none any more when it should have been asked.
	departed
	// outOfReach is for an address that must not be dialled: no failure of an endpoint, and another one may be asked.
	outOfReach
	// refused is for what is no failure of the endpoint: it must not be repeated.
	refused
)

// allows says whether another endpoint may be asked after a failure.
func (r *retry) allows(f failure) bool {
	return f == failedByError && r.onError || f == failedByTimeout && r.onTimeout || f == failedByInvalid && r.onInvalid
}

// allowsStatus says whether another endpoint may be asked after an answer with this status.
func (r *retry) allowsStatus(status int) bool { return slices.Contains(r.statuses, status) }

// repeatable says whether a request may be sent again when an endpoint may have got it: nginx's rule, which leaves out POST,
// LOCK and PATCH.
func (r *retry) repeatable(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPatch, "LOCK":
		return r.nonIdempotent
	}
	return true
}
