package annotations

import (
	"cmp"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
)

// algorithms lists the values of the annotation load-balance, and the load balancing policy for each value. If needs is
// not empty, the value has no effect of its own, because it requires the annotation upstream-hash-by or affinity. If
// that annotation is missing, needs is the warning, and policy is used, as in ingress-nginx.
var algorithms = []struct {
	name   string
	policy ir.Policy
	needs  string
}{
	{name: "round_robin", policy: ir.PolicyRoundRobin},
	{name: "ewma", policy: ir.PolicyEWMA},
	{name: "least_conn", policy: ir.PolicyLeastRequest},
	{name: "random", policy: ir.PolicyRandom},
	{name: "chash", policy: ir.PolicyRoundRobin, needs: needsHash},
	{name: "chashsubset", policy: ir.PolicyRoundRobin, needs: needsHash},
	{name: "sticky_balanced", policy: ir.PolicyRandom, needs: needsAffinity},
	{name: "sticky_persistent", policy: ir.PolicyRandom, needs: needsAffinity},
}

const (
	needsHash = "there is nothing to hash, so endpoints are chosen by round robin: set upstream-hash-by"
	// needsAffinity is the warning for an Ingress whose load-balance annotation requests sticky sessions, but that has
	// no affinity annotation. As in ingress-nginx, only affinity sets the session cookie.
	needsAffinity = "no session cookie is set, so each request goes to a random endpoint: set affinity to cookie, " +
		"and set affinity-mode"
	noAffinity = "the setting has no effect without a session cookie: set affinity to cookie"
	noHash     = "the setting has no effect without a hash: set upstream-hash-by"
	// maxHashBytes is the maximum length of upstream-hash-by and limit-conn-zone-variable, in bytes.
	maxHashBytes = 1024
	// subsetSize is the default of upstream-hash-by-subset-size, as in ingress-nginx.
	subsetSize = 3
	maxSubset  = 1000
)

var loadBalance = Annotation{
	Name: "load-balance",
	Doc: "How an endpoint is chosen: in turn (`round_robin`), by the lowest response time (`ewma`), by the fewest " +
		"active requests (`least_conn`, which ingress-nginx has removed), or at random (`random`, which " +
		"ingress-nginx never had).\n\n" +
		"The annotations `upstream-hash-by` and `affinity` take precedence over load-balance. The values `chash` and " +
		"`chashsubset` require `upstream-hash-by`; `sticky_balanced` and `sticky_persistent` require `affinity`. If " +
		"several Ingresses have the annotation for the same backend, the annotation of the oldest Ingress applies.",
	Values: "one of " + strings.Join(algorithmNames(), ", "), Example: "ewma", Default: "round_robin",
	Scope: ScopeLocation, Risk: RiskLow, Passthrough: true,
	Parse: nginx.Into(func(s *Settings) *string { return &s.Asked.Balancing.Algorithm },
		nginx.OneOf(algorithmNames()...)),
	Check: checkAlgorithm,
}

// The annotations upstream-hash-by*: requests with the same key go to the same endpoint.
var (
	upstreamHashBy = Annotation{
		Name: "upstream-hash-by",
		Doc: "Sends requests with the same hash key to the same endpoint. The hash is consistent: if endpoints are " +
			"added or removed, few requests move to another endpoint. The hash key is text with nginx variables, " +
			"such as $remote_addr, $request_uri, $http_NAME, $cookie_NAME or $arg_NAME.",
		Values: "text with nginx variables", Example: "$request_uri", Default: "no hash", Scope: ScopeLocation,
		Risk: RiskHigh,
		Parse: withVariables(nginx.Into(func(s *Settings) *string { return &s.Asked.Balancing.HashBy },
			readTemplate("", maxHashBytes))),
		Check: checkHashBy,
	}
	upstreamHashBySubset = Annotation{
		Name: "upstream-hash-by-subset",
		Doc: "Distributes requests with the same hash key (upstream-hash-by) among a few endpoints, instead of " +
			"sending them to one endpoint.",
		Values: booleans, Example: "true", Default: "false", Scope: ScopeLocation, Risk: RiskLow,
		Parse: nginx.Into(func(s *Settings) *bool { return &s.Asked.Balancing.Subset }, nginx.Bool),
		Check: func(s *Settings) string { return option.Unless(s.Asked.Balancing.HashBy != "", noHash) },
	}
	upstreamHashBySubsetSize = Annotation{
		Name: "upstream-hash-by-subset-size",
		Doc: "The number of endpoints that share the requests with the same hash key, if upstream-hash-by-subset " +
			"is `true`.",
		Values: "a number from 0 to 1000; 0 means the default", Example: "5", Default: "3", Scope: ScopeLocation,
		Risk:  RiskLow,
		Parse: nginx.Into(func(s *Settings) *int { return &s.Asked.Balancing.SubsetSize }, nginx.Number(0, maxSubset)),
		Check: func(s *Settings) string { return option.Unless(s.Asked.Balancing.HashBy != "", noHash) },
	}
)

const booleans = "true or false"

func algorithmNames() []string {
	var names []string
	for _, a := range algorithms {
		names = append(names, a.name)
	}
	return names
}

func checkAlgorithm(s *Settings) string {
	for _, a := range algorithms {
		if a.name == s.Asked.Balancing.Algorithm && !s.Asked.Affinity.On && s.Asked.Balancing.HashBy == "" {
			return a.needs
		}
	}
	return ""
}

func checkHashBy(s *Settings) string {
	switch {
	case s.Asked.Affinity.On:
		return "the setting has no effect, because the session cookie takes precedence, as in ingress-nginx"
	case s.Asked.Balancing.HashBy != "" && !strings.Contains(s.Asked.Balancing.HashBy, "$"):
		return "the value contains no variable, so all requests go to the same endpoint: add a variable, such as " +
			"$request_uri"
	}
	return ""
}

// balancing holds the values of load-balance and upstream-hash-by*.
type balancing struct {
	Algorithm  string
	HashBy     string
	Subset     bool
	SubsetSize int
}

// finishBalancing sets the load balancing policy and the hash key. A session cookie takes precedence over
// upstream-hash-by, which takes precedence over load-balance.
func (s *Settings) finishBalancing() {
	a, lb, sticky := &s.Asked.Balancing, &s.LoadBalancing, s.Asked.Affinity.On
	lb.Policy, lb.HashBy, lb.HashSubset = "", "", 0
	switch {
	case a.HashBy != "" && !sticky:
		lb.Policy, lb.HashBy = ir.PolicyHash, a.HashBy
		if a.Subset {
			lb.HashSubset = cmp.Or(a.SubsetSize, subsetSize)
		}
	default:
		for _, algorithm := range algorithms {
			if algorithm.name == a.Algorithm && (algorithm.needs == "" || !sticky) {
				lb.Policy = algorithm.policy
			}
		}
	}
}

// readTemplate returns a parser for a value with nginx variables. most is the maximum length of the value in bytes. If
// others is not empty, the value may contain, outside of variables, only letters, digits, underscores and the
// characters in others.
func readTemplate(others string, most int) func(string) (string, error) {
	return func(value string) (string, error) {
		if others != "" {
			if _, err := nginx.Chars(others+"_${}", most)(value); err != nil {
				return "", err
			}
		}
		if len(value) > most {
			return "", tooLong(most)
		}
		if _, err := exchange.ParseTemplate(value); err != nil {
			return "", err
		}
		return value, nil
	}
}
