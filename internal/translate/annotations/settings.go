package annotations

import (
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Settings holds the annotations of one Ingress as typed values.
type Settings struct {
	// Ingress is the name of the Ingress. Only the defaults set it; no annotation changes it.
	Ingress ir.Name
	// Unlogged excludes the requests from the access log.
	Unlogged bool
	// Tracing configures how requests are traced.
	Tracing tracing
	// RewriteTarget replaces the path of a request. It is empty if paths are not rewritten.
	RewriteTarget string
	// UseRegex means that the paths are regular expressions.
	UseRegex bool
	// AppRoot is the target of the redirect for "/". It is empty if there is no redirect. RelativeRedirects omits the
	// scheme and host from the Location header.
	AppRoot           string
	RelativeRedirects bool
	// Aliases are additional names of the hosts. FromToWWW adds a redirect between the host with www. and the host
	// without it.
	Aliases   []string
	FromToWWW bool
	// Attempts configures retries and time limits for endpoints. Forwarding configures how a request is forwarded to an
	// endpoint. Forwarding.Prefix applies only to rewritten paths, so use ForwardingFor.
	Attempts   ir.Attempts
	Forwarding ir.Forwarding
	// Redirect configures the redirect from HTTP to HTTPS.
	Redirect Redirect
	// Passthrough forwards the TLS connections of the hosts to the backend without terminating TLS.
	Passthrough bool
	// TLS is the policy for TLS handshakes of the hosts.
	TLS ir.TLSPolicy
	// LoadBalancing configures how endpoints of the backends are chosen.
	LoadBalancing ir.LoadBalancing
	// Chains are the names of the handler chains for each request, in this order. AvailableChains are the chains that
	// the administrator defined. Only the defaults set AvailableChains; no annotation changes it.
	Chains          []string
	AvailableChains []string
	// AutoHTTPS selects the hosts that get a certificate from an issuer. It is empty if neither the Ingress nor a
	// ConfigMap sets it.
	AutoHTTPS string
	// ClientAuth is the client certificate policy of the hosts. It applies if AsksClients returns true.
	ClientAuth ir.ClientAuth
	// CrossNamespace lets an Ingress refer to objects of other namespaces. Only the defaults set it; no annotation
	// changes it.
	CrossNamespace bool
	// BackendTLSByPath means that the administrator expects proxy-ssl-* to apply only to the paths of the same Ingress.
	// Only the defaults set it.
	BackendTLSByPath bool
	// ParamsConfigMap is the name of the ConfigMap with FastCGI parameters, with or without its namespace.
	ParamsConfigMap string
	// SourceRanges allows or denies clients by their addresses.
	SourceRanges ir.SourceRanges
	// UsersSecret is the Secret with the users for auth-type. Package ingress sets it, because it knows the namespace
	// of the Ingress.
	UsersSecret ir.Name
	// CustomHeaders configures additional response headers.
	CustomHeaders CustomHeaders
	// ErrorPages configures the responses that replace errors.
	ErrorPages ErrorPages
	// Canary is nil for an Ingress that is not a canary.
	Canary *ir.Canary
	// IgnoreSnippets serves Ingresses without their snippets, whatever these contain. Only the defaults set it; no
	// annotation changes it.
	IgnoreSnippets bool
	// Closed means that all requests get 503.
	Closed bool
	// Asked holds the values that take effect only in combination with others.
	Asked Asked
}

// Asked holds single values of annotations and keys, which Finish combines. So their order does not matter, and the
// Ingress may set one value and the ConfigMap another. The types of the fields are in the files of their features.
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
	// SatisfyAny lets a client in if it passes one of several filters for access control.
	SatisfyAny bool
	// Auth is the external authentication of the Ingress. GlobalAuth comes from the ConfigMap, for Ingresses without
	// Auth, unless NoGlobalAuth is set. NoAuth are the paths that need no authentication. Only the defaults set
	// GlobalAuth and NoAuth.
	Auth, GlobalAuth externalAuth
	NoGlobalAuth     bool
	NoAuth           []string

	// Snippets holds the settings for nginx configuration and ModSecurity.
	Snippets snippetSettings

	// Mirror is the target for copies of requests. If its URL is empty, there are no copies.
	Mirror ir.Mirror
	// ProxyRedirect configures how redirects of endpoints are rewritten.
	ProxyRedirect proxyRedirect
}

// Finish combines the values in Asked. It may be called again when more values are known.
func (s *Settings) Finish() {
	for _, finish := range finishers {
		finish(s)
	}
}

// Filters returns the filters for one path of the Ingress, in the order in which a request passes them.
func (s *Settings) Filters(path string) []ir.Filter {
	var all []ir.Filter
	for i := range phases {
		if phases[i].filters != nil {
			all = append(all, phases[i].filters(s, path)...)
		}
	}
	return all
}

// ForwardingFor returns how requests for one path of the Ingress are forwarded.
func (s *Settings) ForwardingFor(path string) ir.Forwarding {
	f := s.Forwarding
	if !s.Rewrites(path) {
		f.Prefix = ""
	}
	return f
}

// Parse parses the annotations of an Ingress. Settings without an annotation keep their defaults. An invalid annotation
// is reported and ignored, and the others take effect.
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
