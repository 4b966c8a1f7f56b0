package annotations

import (
	"cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

const (
	// maxRequests is the maximum value of the request and connection limits. It exceeds what a client can send in a
	// second.
	maxRequests   = 1_000_000
	maxMultiplier = 1000
	// defaultMultiplier is the default of limit-burst-multiplier, as in ingress-nginx.
	defaultMultiplier = 5

	limitValues = "a number from 0 to 1000000; 0 means no limit"
	limitDoc    = "\n\n" +
		"Clients are identified by their address, unless the key " +
		"[limit-conn-zone-variable](configmap.md#limit-conn-zone-variable) of the ConfigMap is set. The limit " +
		"applies to all hosts and paths of the Ingress together. Each replica counts only its own requests. Requests " +
		"that are redirected are not counted. Requests that are later rejected because of the client's address or " +
		"password are counted."
	exemptDoc = "The networks whose clients are exempt from limit-rps, limit-rpm and limit-connections. If an entry " +
		"is not a valid network, no client is exempt."
	// everybodyCounts is used in messages about an invalid list of exempt clients. It describes the effect: no client
	// is exempt from the limits.
	everybodyCounts = "the limits apply to all clients"
	noLimit         = "the setting has no effect without limit-rps, limit-rpm or limit-connections"
)

// The annotations that limit the number of requests and connections per client.
var (
	limitRPS = Annotation{
		Name: "limit-rps",
		Doc: "The average number of requests per second that one client may send. In a burst, a client may send " +
			"limit-rps × limit-burst-multiplier + 1 requests at once. Requests above the limit get 503, or the " +
			"status in the key [limit-req-status-code](configmap.md#limit-req-status-code) of the ConfigMap, and are " +
			"not counted." + limitDoc,
		Values: limitValues, Example: "10", Default: "no limit", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.PerSecond }, nginx.Number(0, maxRequests)),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	limitRPM = Annotation{
		Name: "limit-rpm",
		Doc: "Limits the average number of requests per minute. The limit works in the same way as " +
			"[limit-rps](annotations.md#limit-rps). If limit-rps and limit-rpm are both set, both limits apply. A " +
			"request that exceeds one of the limits is not counted for the other limit either.",
		Values: limitValues, Example: "300", Default: "no limit", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.PerMinute }, nginx.Number(0, maxRequests)),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	limitBurstMultiplier = Annotation{
		Name:   "limit-burst-multiplier",
		Doc:    "The size of a burst of requests, as a multiple of limit-rps or limit-rpm.",
		Values: "a number from 1 to 1000", Example: "3", Default: "5", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.Multiplier },
			nginx.Number(1, maxMultiplier)),
		Check: func(s *Settings) string {
			return option.Unless(s.Asked.Limits.PerSecond+s.Asked.Limits.PerMinute > 0,
				"the setting has no effect without limit-rps or limit-rpm")
		},
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	limitConnections = Annotation{
		Name: "limit-connections",
		Doc: "The maximum number of concurrent requests of one client. A request is counted until its response ends, " +
			"and a WebSocket until it is closed. Each HTTP/2 or HTTP/3 stream is one request. Requests above the " +
			"limit get 503, or the status in the key [limit-conn-status-code](configmap.md#limit-conn-status-code) " +
			"of the ConfigMap." + limitDoc,
		Values: limitValues, Example: "20", Default: "no limit", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.Connections },
			nginx.Number(0, maxRequests)),
		OnError: (*Settings).close, Meanwhile: ingressClosed,
	}
	limitAllowlist = Annotation{
		Name: "limit-allowlist", Doc: exemptDoc,
		Values: sourceRangeValues, Example: "10.0.0.0/8,2001:db8::/32", Default: "none", Scope: ScopeLocation,
		Risk:    RiskLow,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Limits.Exempt }, nginx.AllNetworks),
		OnError: func(s *Settings) { s.Asked.Limits.NoExemption = true }, Meanwhile: everybodyCounts, Lines: true,
		Check: withoutLimit,
	}
	limitWhitelist = Annotation{
		Name: "limit-whitelist",
		Doc: "The older name of [limit-allowlist](annotations.md#limit-allowlist). If an Ingress has both, " +
			"limit-allowlist is used.",
		Values: sourceRangeValues, Example: "10.0.0.0/8", Default: "none", Scope: ScopeLocation, Risk: RiskLow,
		Parse:   nginx.Into(func(s *Settings) *[]string { return &s.Asked.Limits.Listed }, nginx.AllNetworks),
		OnError: func(s *Settings) { s.Asked.Limits.NoExemption = true }, Meanwhile: everybodyCounts, Lines: true,
		Check: withoutLimit,
	}
)

// The ConfigMap keys for the limits.
var (
	// LimitStatus is the ConfigMap key limit-req-status-code.
	LimitStatus = Annotation{
		Name:   "limit-req-status-code",
		Doc:    "The status code for requests that exceed limit-rps, limit-rpm, or limit_req in a snippet.",
		Values: "a number from 400 to 599", Example: "429", Default: "503",
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.Status }, nginx.Number(400, 599)),
	}
	// LimitConnectionsStatus is the ConfigMap key limit-conn-status-code.
	LimitConnectionsStatus = Annotation{
		Name:   "limit-conn-status-code",
		Doc:    "The status code for requests that exceed limit-connections, or limit_conn in a snippet.",
		Values: "a number from 400 to 599", Example: "429", Default: "503",
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Limits.ConnectionsStatus }, nginx.Number(400, 599)),
	}
	// LimitKey is the ConfigMap key limit-conn-zone-variable.
	LimitKey = Annotation{
		Name: "limit-conn-zone-variable",
		Doc: "The key that identifies a client for limit-rps, limit-rpm and limit-connections: text with nginx " +
			"variables. Requests for which the key is empty are not limited, so do not use a header or cookie that " +
			"clients can omit.",
		Values: "text with nginx variables", Example: "$http_x_api_key",
		Default: "$binary_remote_addr, the address of the client",
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Limits.Key },
			readTemplate("", maxHashBytes))),
		Meanwhile: "clients are identified by their address",
	}
)

// limits holds the values of the annotations and ConfigMap keys that limit the requests and connections of each client.
type limits struct {
	PerSecond, PerMinute, Connections, Multiplier int
	// Exempt and Listed are the networks in limit-allowlist and limit-whitelist, respectively. NoExemption is true if
	// either annotation is invalid.
	Exempt, Listed []string
	NoExemption    bool

	Status, ConnectionsStatus int
	Key                       string
}

// The method none returns true if there is no limit, neither for requests nor for connections.
func (l *limits) none() bool { return l.PerSecond == 0 && l.PerMinute == 0 && l.Connections == 0 }

func withoutLimit(s *Settings) string { return option.Unless(!s.Asked.Limits.none(), noLimit) }

// limits returns the filters that enforce the limits. As in nginx, they run before authentication, so that they also
// limit attempts to guess a password.
func (s *Settings) limits(string) (all []ir.Filter) {
	l, snippet := &s.Asked.Limits, s.snippetLimits()
	if !l.none() {
		all = append(all, s.rateLimit(snippet))
	}
	// Without limits of its own, the statuses may apply to limits that the path inherits, or precede the statuses that
	// it inherits for the limits above.
	if snippet != nil && (snippet.Guards() != ir.NoRequests || s.HTTP.HasZones() || !l.none()) {
		all = append(all, *snippet)
	}
	return all
}

// rateLimit returns the filter for the annotations. The statuses in a snippet precede the statuses of the ConfigMap.
func (s *Settings) rateLimit(snippet *ir.ZoneLimits) ir.RateLimit {
	l := &s.Asked.Limits
	if snippet == nil {
		snippet = &ir.ZoneLimits{}
	}
	limit := ir.RateLimit{
		Zone: s.Ingress.String(), RequestsPerSecond: l.PerSecond, RequestsPerMinute: l.PerMinute,
		Connections:       l.Connections,
		Status:            cmp.Or(snippet.Status, l.Status, 503),
		ConnectionsStatus: cmp.Or(snippet.ConnectionsStatus, l.ConnectionsStatus, 503),
	}
	if l.PerSecond > 0 || l.PerMinute > 0 {
		limit.Burst = cmp.Or(l.Multiplier, defaultMultiplier)
	}
	if limit.Exempt = l.Exempt; l.Exempt == nil {
		limit.Exempt = l.Listed
	}
	if l.NoExemption {
		limit.Exempt = nil
	}
	if l.Key != "$binary_remote_addr" {
		limit.Key = l.Key
	}
	return limit
}

// snippetLimits returns the limits in the snippets for locations, or nil if there are none.
func (s *Settings) snippetLimits() *ir.ZoneLimits {
	if read := s.Asked.Snippets.Location.Read; read != nil {
		return s.withDefaults(read.Limits)
	}
	return nil
}

// withDefaults returns limits of a snippet with the statuses of the ConfigMap. It returns nil if of is nil.
func (s *Settings) withDefaults(of *ir.ZoneLimits) *ir.ZoneLimits {
	if of == nil {
		return nil
	}
	whole := *of
	whole.DefaultStatus, whole.DefaultConnectionsStatus = s.Asked.Limits.Status, s.Asked.Limits.ConnectionsStatus
	return &whole
}
