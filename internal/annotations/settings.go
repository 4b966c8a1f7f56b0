package annotations

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/option"
	"github.com/k8singress/k8singress/internal/report"
)

// Settings are the annotations of one Ingress as typed values.
type Settings struct {
	// Ingress is the one that they are of. It is for defaults, and no annotation changes it.
	Ingress ir.Name
	// Unlogged keeps the requests out of the access log.
	Unlogged bool
	// Tracing is how requests are traced.
	Tracing tracing
	// RewriteTarget replaces the path of a request; it is empty without rewrite.
	RewriteTarget string
	// UseRegex says that the paths are regular expressions.
	UseRegex bool
	// AppRoot is where requests for "/" are sent to; empty is nowhere. RelativeRedirects leaves scheme and host out of the answer.
	AppRoot           string
	RelativeRedirects bool
	// Aliases are more names of the hosts. FromToWWW redirects from the host with www. in front, or without.
	Aliases   []string
	FromToWWW bool
	// Attempts are how the endpoints are tried, Forwarding is how a request is handed to one. Forwarding.Prefix holds for
	// the paths that are rewritten only: ForwardingFor knows.
	Attempts   ir.Attempts
	Forwarding ir.Forwarding
	// Redirect is the way from HTTP to HTTPS.
	Redirect Redirect
	// Passthrough hands the TLS connections of the hosts to the backend as they are.
	Passthrough bool
	// TLS is the handshake of the hosts.
	TLS ir.TLSPolicy
	// LoadBalancing is what the Ingress asks for its backends.
	LoadBalancing ir.LoadBalancing
	// Chains are the names of the handler chains that a request meets, in this order. AvailableChains are those which the
	// administrator offers; it is for defaults, and no annotation changes it.
	Chains          []string
	AvailableChains []string
	// AutoHTTPS says which hosts get a certificate from an issuer; it is empty where neither the Ingress nor a ConfigMap says it.
	AutoHTTPS string
	// ClientAuth holds for the hosts, if AsksClients says so.
	ClientAuth ir.ClientAuth
	// CrossNamespace lets an Ingress refer to objects of other namespaces. It is for defaults, and no annotation changes it.
	CrossNamespace bool
	// BackendTLSByPath says that the administrator knows that proxy-ssl-* hold for their own paths only. It is for defaults, too.
	BackendTLSByPath bool
	// ParamsConfigMap is the name of a ConfigMap with parameters of FastCGI, with or without its namespace in front.
	ParamsConfigMap string
	// SourceRanges are the addresses that clients may come from.
	SourceRanges ir.SourceRanges
	// UsersSecret has those whom auth-type lets in. Whoever knows the namespace of the Ingress sets it.
	UsersSecret ir.Name
	// CustomHeaders are set on answers.
	CustomHeaders CustomHeaders
	// ErrorPages are what clients get in place of errors.
	ErrorPages ErrorPages
	// Canary is nil for an Ingress that answers by itself.
	Canary *ir.Canary
	// IgnoreSnippets serves Ingresses without their snippets, whatever these are. It is for defaults, and no annotation changes it.
	IgnoreSnippets bool
	// Closed says that every request is refused.
	Closed bool
	// Asked is what has its effect together with other values only.
	Asked Asked
}

// Asked is what was asked for, value by value, where several values make one effect: Finish makes it, so that the order in
// which they are read makes no difference, and so that an Ingress may say one of them and the ConfigMap another one. Each part stands
// in the file of its feature.
type Asked struct {
	Retries    retries
	Rate       rate
	Prefix     string
	Balancing  balancing
	Affinity   stickiness
	Check      ir.HealthCheck
	ClientAuth clientAuth
	BackendTLS backendTLS
	Canary     canaryAsked
	Sources    sources
	Redirects  redirects
	CORS       cors
	Limits     limits
	BasicAuth  basicAuth
	// SatisfyAny lets in who passes one guard of several.
	SatisfyAny bool
	// Auth is external authentication, and GlobalAuth that of the ConfigMap for Ingresses without, unless NoGlobalAuth says otherwise. NoAuth
	// are the beginnings of paths that need none. GlobalAuth and NoAuth are for defaults.
	Auth, GlobalAuth externalAuth
	NoGlobalAuth     bool
	NoAuth           []string

	// Snippets are texts of nginx configuration, and ModSecurity.
	Snippets snippetSettings

	// Mirror is where copies go; without a URL there are none.
	Mirror ir.Mirror
	// ProxyRedirect is for redirects of endpoints.
	ProxyRedirect proxyRedirect
}

// Finish makes what several values make together. It may be called again when more values are known.
func (s *Settings) Finish() {
	for _, finish := range finishers {
		finish(s)
	}
}

// Filters returns the filters for one path of the Ingress, in the order in which a request meets them.
func (s *Settings) Filters(path string) []ir.Filter {
	var all []ir.Filter
	for i := range phases {
		if phases[i].filters != nil {
			all = append(all, phases[i].filters(s, path)...)
		}
	}
	return all
}

// ForwardingFor returns how requests on one path of the Ingress are handed on.
func (s *Settings) ForwardingFor(path string) ir.Forwarding {
	f := s.Forwarding
	if !s.Rewrites(path) {
		f.Prefix = ""
	}
	return f
}

// Parse reads the annotations of an Ingress. Where they say nothing, the defaults hold. An annotation that cannot be read is left
// out and reported; the others count.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	r := option.Reading[Settings]{Settings: &defaults, Invalid: report.InvalidAnnotation}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, ours := nameOf(key)
		field := report.AnnotationField(key)
		switch row := Table.Find(name); {
		case !ours:
		case row != nil:
			r.Read(row, all[key], field)
		case slices.Contains(known, name) && requestsNothing(all[key]):
		default:
			r.Warn(report.UnknownAnnotation, field, unknown(key))
		}
	}
	defaults.Finish()
	defaults.finishFirewall()
	r.Check()
	return &defaults, r.Problems
}
