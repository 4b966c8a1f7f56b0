package annotations

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// The default values and limits of the health check annotations.
const (
	checkInterval  = 10 * time.Second
	checkTimeout   = 5 * time.Second
	checkHealthy   = 2
	checkUnhealthy = 3
	maxChecks      = 100
	maxFailures    = 1000
	noFastCGICheck = "the setting has no effect, because health checks do not support FastCGI: use " + OwnPrefix +
		"eject-after-failures"
	noGRPCStatus = "the setting has no effect, because the response to a gRPC health check is SERVING instead of an " +
		"HTTP status"
	noHealthCheck = "the setting has no effect, because there is no health check: " +
		"set " + OwnPrefix + "health-check-path"
)

// The annotations for slow start of new endpoints, and for the ejection of failing endpoints.
var (
	slowStart = Annotation{
		Name: OwnPrefix + "slow-start",
		Doc: "The number of seconds during which a new endpoint gets fewer requests than the other endpoints. Its " +
			"share of the requests grows during this time. With 0, a new endpoint gets its full share at once.",
		Values: nginx.AreSeconds(0), Example: "30", Default: "0", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.LoadBalancing.SlowStart }, nginx.Seconds(0)),
	}
	ejectAfterFailures = Annotation{
		Name: OwnPrefix + "eject-after-failures",
		Doc: "The number of consecutive failed requests after which an endpoint is ejected. From time to time, an " +
			"ejected endpoint gets a single request, which tests whether the endpoint works again. With `off`, " +
			"endpoints are never ejected.",
		Values: fmt.Sprintf("a number from 1 to %d, or off", maxFailures), Example: "5", Default: "3",
		Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *int { return &s.LoadBalancing.EjectAfter }, readFailures),
	}
)

// The annotations health-check-*, which configure periodic requests that test each endpoint.
var (
	healthCheckPath = Annotation{
		Name: OwnPrefix + "health-check-path",
		Doc: "The path of a health check, with an optional query. The controller requests the path from every " +
			"endpoint at regular intervals, and sends no client requests to endpoints that fail the check.\n\n" +
			"With backend-protocol GRPC or GRPCS, the check calls the standard service grpc.health.v1 instead. The " +
			"part of the value after the slash is then the name of the gRPC service to check, and `/` checks the " +
			"whole server. There are no health checks with backend-protocol FCGI.",
		Values: "a path", Example: "/healthz", Default: "no health check", Scope: ScopeIngress,
		Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Check.Path }, readCheckPath),
		Check: func(s *Settings) string { return option.Unless(s.Forwarding.Protocol != ir.FastCGI, noFastCGICheck) },
	}
	healthCheckInterval = Annotation{
		Name:   OwnPrefix + "health-check-interval",
		Doc:    "The number of seconds from one health check of an endpoint to the next.",
		Values: nginx.AreSeconds(1), Example: "5", Default: "10", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Check.Interval }, nginx.Seconds(1)),
		Check: checkChecked,
	}
	healthCheckTimeout = Annotation{
		Name:   OwnPrefix + "health-check-timeout",
		Doc:    "The timeout for the response to a health check, in seconds.",
		Values: nginx.AreSeconds(1), Example: "2", Default: "5", Scope: ScopeIngress, Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Check.Timeout }, nginx.Seconds(1)),
		Check: checkChecked,
	}
	healthCheckHealthyAfter = Annotation{
		Name:   OwnPrefix + "health-check-healthy-after",
		Doc:    "The number of consecutive successful health checks after which an endpoint gets requests again.",
		Values: fmt.Sprintf("a number from 1 to %d", maxChecks), Example: "1", Default: "2", Scope: ScopeIngress,
		Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Check.Healthy }, nginx.Number(1, maxChecks)),
		Check: checkChecked,
	}
	healthCheckUnhealthyAfter = Annotation{
		Name:   OwnPrefix + "health-check-unhealthy-after",
		Doc:    "The number of consecutive failed health checks after which an endpoint gets no more requests.",
		Values: fmt.Sprintf("a number from 1 to %d", maxChecks), Example: "1", Default: "3", Scope: ScopeIngress,
		Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Check.Unhealthy }, nginx.Number(1, maxChecks)),
		Check: checkChecked,
	}
	healthCheckStatus = Annotation{
		Name:   OwnPrefix + "health-check-status",
		Doc:    "The status code with which an endpoint must respond to a health check.",
		Values: "a number from 100 to 599", Example: "204", Default: "any from 200 to 399", Scope: ScopeIngress,
		Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Check.Status }, nginx.Number(100, 599)),
		Check: func(s *Settings) string {
			return cmp.Or(checkChecked(s),
				option.Unless(!s.speaksGRPC(), noGRPCStatus))
		},
	}
	healthCheckHost = Annotation{
		Name:   OwnPrefix + "health-check-host",
		Doc:    "The Host header of a health check.",
		Values: "a host", Example: "app.example.com", Default: "the address of the endpoint", Scope: ScopeIngress,
		Risk: RiskLow, Passthrough: true,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Check.Host },
			nginx.Chars("._-:[]", maxDomainBytes)),
		Check: checkChecked,
	}
)

func checkChecked(s *Settings) string { return option.Unless(s.Asked.Check.Path != "", noHealthCheck) }

func readFailures(value string) (int, error) {
	if value == off {
		return -1, nil
	}
	n, err := nginx.Number(1, maxFailures)(value)
	if err != nil {
		return 0, fmt.Errorf("%w, nor off", err)
	}
	return n, nil
}

// readCheckPath reads the path of health checks. It rejects a path that is not valid in a request, because every
// endpoint would fail the check.
func readCheckPath(value string) (string, error) {
	if err := checkPath(value); err != nil {
		return "", err
	}
	if _, err := url.ParseRequestURI(value); err != nil {
		return "", fmt.Errorf("%s contains a %% without two hexadecimal digits after it: write %%25 instead",
			nginx.Quote(value))
	}
	return value, nil
}

func (s *Settings) speaksGRPC() bool {
	return s.Forwarding.Protocol == ir.GRPC || s.Forwarding.Protocol == ir.GRPCS
}

// finishHealthCheck sets LoadBalancing.HealthCheck if health-check-path is set. Zero fields get their default values.
func (s *Settings) finishHealthCheck() {
	s.LoadBalancing.HealthCheck = nil
	if s.Asked.Check.Path == "" || s.Forwarding.Protocol == ir.FastCGI {
		return
	}
	check := s.Asked.Check
	if check.GRPC = s.speaksGRPC(); check.GRPC {
		check.Status = 0
	}
	check.Interval = cmp.Or(check.Interval, checkInterval)
	check.Timeout = cmp.Or(check.Timeout, checkTimeout)
	check.Healthy = cmp.Or(check.Healthy, checkHealthy)
	check.Unhealthy = cmp.Or(check.Unhealthy, checkUnhealthy)
	check.TLS = s.Forwarding.Protocol == ir.HTTPS || s.Forwarding.Protocol == ir.GRPCS
	if check.TLS && s.Forwarding.TLS != nil {
		check.Secured = *s.Forwarding.TLS
		if check.Secured.NameVaries() {
			// A check has no request, so there is no name. The connections of requests are still verified.
			check.Secured.Name, check.Secured.SendName, check.Secured.Verify = "", false, false
		}
	}
	s.LoadBalancing.HealthCheck = &check
}
