package annotations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// The annotations proxy-*-timeout, which limit how long connecting to an endpoint, sending to it, and reading from it
// may take. As in ingress-nginx, values are numbers of seconds without a unit.
var (
	proxyConnectTimeout = Annotation{
		Name: "proxy-connect-timeout",
		Doc: "The timeout for connecting to an endpoint, in seconds. If it expires, another endpoint is tried; after " +
			"the last attempt, the client gets 504.",
		Values: nginx.AreSeconds(1), Example: "10", Default: "5", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Attempts.Connect }, nginx.Seconds(1)),
	}
	proxyReadTimeout = Annotation{
		Name: "proxy-read-timeout",
		Doc: "The maximum time between two reads from an endpoint, in seconds; the whole response may take longer. " +
			"If the timeout expires before the response has started, the client gets 504.",
		Values: nginx.AreSeconds(1), Example: "3600", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Attempts.Read }, nginx.Seconds(1)),
	}
	proxySendTimeout = Annotation{
		Name:   "proxy-send-timeout",
		Doc:    "The maximum time between two writes of the request to an endpoint, in seconds.",
		Values: nginx.AreSeconds(1), Example: "3600", Default: "60", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Attempts.Write }, nginx.Seconds(1)),
	}
)

const maxTries = 100

// The annotations proxy-next-upstream*, which decide when another endpoint is tried.
var (
	proxyNextUpstream = Annotation{
		Name: "proxy-next-upstream",
		Doc: "The failures after which a request is retried at another endpoint, as long as the response has not " +
			"started. POST, LOCK and PATCH requests that an endpoint may have received are retried only with " +
			"`non_idempotent`. With `off`, no other endpoint is tried.",
		Values:  "space-separated list of " + strings.Join(conditionNames(), ", "),
		Example: "error timeout http_502",
		Default: "error timeout", Scope: ScopeLocation, Risk: RiskMedium,
		Parse: nginx.Into(func(s *Settings) *[]ir.RetryOn { return &s.Asked.Retries.On }, readConditions),
	}
	proxyNextUpstreamTimeout = Annotation{
		Name: "proxy-next-upstream-timeout",
		Doc: "The number of seconds after the arrival of a request during which it may be retried at another " +
			"endpoint. 0 means no limit.",
		Values: nginx.AreSeconds(0), Example: "10", Default: "0", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *time.Duration { return &s.Attempts.Total }, nginx.Seconds(0)),
	}
	proxyNextUpstreamTries = Annotation{
		Name: "proxy-next-upstream-tries",
		Doc: "The maximum number of endpoints that are tried for a request. 0 means 100, the maximum; in " +
			"ingress-nginx, 0 means no limit.",
		Values:  fmt.Sprintf("a number from 0 to %d; larger numbers are treated as %[1]d", maxTries),
		Example: "2", Default: "3",
		Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Attempts.Tries }, readTries),
	}
)

func readTries(value string) (int, error) {
	n, err := nginx.Number(0, 1<<31-1)(value)
	if err != nil {
		return 0, fmt.Errorf("%s is not a number from 0 to %d", nginx.Quote(value), maxTries)
	}
	if n == 0 {
		n = maxTries
	}
	return min(n, maxTries), nil
}

// conditions lists the supported values of proxy-next-upstream. The list Attempts.On has the same order as conditions,
// whatever the order in the annotation is.
var conditions = []ir.RetryOn{
	ir.RetryOnError, ir.RetryOnTimeout, ir.RetryOnInvalidHeader, ir.RetryOn500, ir.RetryOn502, ir.RetryOn503,
	ir.RetryOn504,
	ir.RetryOn403, ir.RetryOn404, ir.RetryOn429, ir.RetryNonIdempotent,
}

// The value off of proxy-next-upstream disables retries, even if the annotation lists other conditions as well.
const off = "off"

func conditionNames() []string {
	var names []string
	for _, c := range conditions {
		names = append(names, string(c))
	}
	return append(names, off)
}

func readConditions(value string) ([]ir.RetryOn, error) {
	words := strings.Fields(value)
	for _, w := range words {
		if w != off && !slices.Contains(conditions, ir.RetryOn(w)) {
			return nil, fmt.Errorf("%s is not one of %s: write space-separated conditions%s",
				nginx.Quote(w), strings.Join(conditionNames(), ", "), nginx.Suggestion(w, conditionNames()))
		}
	}
	on := []ir.RetryOn{}
	if slices.Contains(words, off) {
		return on, nil
	}
	for _, c := range conditions {
		if slices.Contains(words, string(c)) {
			on = append(on, c)
		}
	}
	return on, nil
}

// retries holds the values that finishRetries combines: the annotation proxy-next-upstream and the ConfigMap key
// retry-non-idempotent.
type retries struct {
	On            []ir.RetryOn
	NonIdempotent bool
}

// finishRetries sets Attempts.On from the values of proxy-next-upstream and retry-non-idempotent.
func (s *Settings) finishRetries() {
	on := s.Asked.Retries.On
	turnedOff := on != nil && len(on) == 0
	if s.Asked.Retries.NonIdempotent && !turnedOff && !slices.Contains(on, ir.RetryNonIdempotent) {
		if on == nil {
			on = []ir.RetryOn{ir.RetryOnError, ir.RetryOnTimeout}
		}
		on = append(slices.Clone(on), ir.RetryNonIdempotent)
	}
	s.Attempts.On = on
}
