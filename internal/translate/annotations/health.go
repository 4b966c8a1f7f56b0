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

// The defaults and limits of health checks.
const (
	checkInterval  = 10 * time.Second
	checkTimeout   = 5 * time.Second
	checkHealthy   = 2
	checkUnhealthy = 3
	mostChecks     = 100
	mostFailures   = 1000
	noFastCGICheck = "this has no effect, because there is no health check by FastCGI: requests alone show whether " +
		"such an endpoint works, see " + OwnPrefix + "eject-after-failures"
	noGRPCStatus = "this has no effect, because gRPC answers a health check with SERVING, and not with a status " +
		"of HTTP"
	noHealthCheck = "this has no effect, because there is no health check: set " + OwnPrefix + "health-check-path"
)

// The annotations for new endpoints, and for endpoints that fail.
var (
	slowStart = Annotation{
		Name: OwnPrefix + "slow-start",
		Doc: "For how many seconds a new endpoint gets less than its share of the requests, growing from little to " +
			"all of it. 0 is its full share at once.",
		Values: nginx.AreSeconds(0), Example: "30", Default: "0", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.LoadBalancing.SlowStart }, nginx.Seconds(0)),
	}
	ejectAfterFailures = Annotation{
		Name: OwnPrefix + "eject-after-failures",
		Doc: "How many requests in a row an endpoint may fail before it is ejected for a while. Now and then one " +
			"request tries it again. With `off` it is never ejected.",
		Values: fmt.Sprintf("a number from 1 to %d, or off", mostFailures), Example: "5", Default: "3",
		Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.LoadBalancing.EjectAfter }, readFailures),
	}
)

// The annotations health-check-*, which configure requests that test whether an endpoint works.
var (
	healthCheckPath = Annotation{
		Name: OwnPrefix + "health-check-path",
		Doc: "Requests this path from every endpoint again and again, and sends no requests to an endpoint that " +
			"fails. It may have a query. With backend-protocol GRPC or GRPCS the standard health service " +
			"grpc.health.v1 is called, for the service named behind the slash; / is the server as a whole. FCGI has " +
			"no health check.",
		Values: "a path", Example: "/healthz", Default: "no health check", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Check.Path }, readCheckPath),
		Check: func(s *Settings) string { return option.Unless(s.Forwarding.Protocol != ir.FastCGI, noFastCGICheck) },
	}
	healthCheckInterval = Annotation{
		Name:   OwnPrefix + "health-check-interval",
		Doc:    "How many seconds there are from one health check of an endpoint to the next.",
		Values: nginx.AreSeconds(1), Example: "5", Default: "10", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Check.Interval }, nginx.Seconds(1)),
		Check: checkChecked,
	}
	healthCheckTimeout = Annotation{
		Name:   OwnPrefix + "health-check-timeout",
		Doc:    "How many seconds an endpoint may take for its answer to a health check.",
		Values: nginx.AreSeconds(1), Example: "2", Default: "5", Scope: ScopeIngress, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Asked.Check.Timeout }, nginx.Seconds(1)),
		Check: checkChecked,
	}
	healthCheckHealthyAfter = Annotation{
		Name:   OwnPrefix + "health-check-healthy-after",
		Doc:    "How many health checks in a row let an endpoint get requests again.",
		Values: fmt.Sprintf("a number from 1 to %d", mostChecks), Example: "1", Default: "2", Scope: ScopeIngress,
		Risk:  RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Check.Healthy }, nginx.Number(1, mostChecks)),
		Check: checkChecked,
	}
	healthCheckUnhealthyAfter = Annotation{
		Name:   OwnPrefix + "health-check-unhealthy-after",
		Doc:    "How many failed health checks in a row take an endpoint out.",
		Values: fmt.Sprintf("a number from 1 to %d", mostChecks), Example: "1", Default: "3", Scope: ScopeIngress,
		Risk:  RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Check.Unhealthy }, nginx.Number(1, mostChecks)),
		Check: checkChecked,
	}
	healthCheckStatus = Annotation{
		Name:   OwnPrefix + "health-check-status",
		Doc:    "The status that a health check expects.",
		Values: "a number from 100 to 599", Example: "204", Default: "any from 200 to 399", Scope: ScopeIngress,
		Risk:  RiskLow,
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
		Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Check.Host },
			nginx.Chars("._-:[]", mostDomainBytes)),
		Check: checkChecked,
	}
)

func checkChecked(s *Settings) string { return option.Unless(s.Asked.Check.Path != "", noHealthCheck) }

func readFailures(value string) (int, error) {
	if value == off {
		return -1, nil
	}
	n, err := nginx.Number(1, mostFailures)(value)
	if err != nil {
		return 0, fmt.Errorf("%w, nor off", err)
	}
	return n, nil
}

// readCheckPath reads a path. It rejects a path that cannot be requested, because every endpoint would fail the check.
func readCheckPath(value string) (string, error) {
	if err := checkPath(value); err != nil {
		return "", err
	}
	if _, err := url.ParseRequestURI(value); err != nil {
		return "", fmt.Errorf("%s has a %% in it without two hexadecimal digits behind: write %%25 for it",
			nginx.Quote(value))
	}
	return value, nil
}

func (s *Settings) speaksGRPC() bool {
	return s.Forwarding.Protocol == ir.GRPC || s.Forwarding.Protocol == ir.GRPCS
}

// finishHealthCheck sets the health check if it has a path. Zero fields get their defaults.
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
	}
	s.LoadBalancing.HealthCheck = &check
}
