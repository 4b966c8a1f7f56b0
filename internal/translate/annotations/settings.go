package annotations

import (
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// Settings holds the annotations of one Ingress as typed values.
type Settings struct {
	// Ingress is the name of the Ingress. It is set in the default settings that are passed to Parse, not by an
	// annotation.
	Ingress ir.Name
	// PathGroups are the names of the groups in the paths of the Ingress, as if all paths were regular expressions.
	// They are set in the default settings, too.
	PathGroups []string
	// RoutePolicy holds the settings that all routes of the Ingress get unchanged.
	ir.RoutePolicy
	// RewriteTarget is the path to which requests are rewritten. It is empty if paths are not rewritten.
	RewriteTarget string
	// UseRegex is true if the paths are regular expressions.
	UseRegex bool
	// AppRoot is the target of the redirect for "/". It is empty if there is no redirect. RelativeRedirects is true if
	// the Location header of this redirect, and of redirects of snippets to a path, omits the scheme and host.
	AppRoot           string
	RelativeRedirects bool
	// Aliases are additional names of the hosts. FromToWWW is true if requests are redirected between the host with the
	// prefix www. and the host without it.
	Aliases   []string
	FromToWWW bool
	// Attempts configures retries and time limits for endpoints. Forwarding configures how a request is forwarded to an
	// endpoint. Call ForwardingFor instead of reading Forwarding, because Forwarding.Prefix must only be used for
	// rewritten paths.
	Attempts   ir.Attempts
	Forwarding ir.Forwarding
	// Redirect configures the redirect from HTTP to HTTPS.
	Redirect Redirect
	// Passthrough is true if TLS connections for the hosts are forwarded to the backend without terminating TLS.
	Passthrough bool
	// TLS configures the TLS handshakes for the hosts.
	TLS ir.TLSPolicy
	// LoadBalancing configures how endpoints of the backends are chosen.
	LoadBalancing ir.LoadBalancing
	// Chains are the names of the handler chains that process each request, in this order. AvailableChains are the
	// chains that the administrator defined. They come from the default settings; no annotation changes them.
	Chains          []string
	AvailableChains []string
	// DefaultChains are the names of the handler chains that the administrator has set for the Ingress. They are set in
	// the default settings by package ingress; no annotation changes them.
	DefaultChains []string
	// AutoHTTPS selects the hosts that get a certificate from an issuer. It is empty if neither the Ingress nor the
	// ConfigMap sets auto-https.
	AutoHTTPS string
	// OnDemandTLS requests certificates on demand.
	OnDemandTLS bool
	// ClientAuth configures client certificates for the hosts. It applies only if AsksClients returns true.
	ClientAuth ir.ClientAuth
	// CrossNamespace is true if an Ingress may refer to objects in other namespaces. It is set in the ConfigMap; no
	// annotation changes it.
	CrossNamespace bool
	// BackendTLSByPath is the value of the ConfigMap key proxy-ssl-location-only; no annotation changes it. It only
	// disables a warning. The warning tells an Ingress whose endpoints use TLS that the annotations proxy-ssl-* of
	// another Ingress for the same host do not apply to it.
	BackendTLSByPath bool
	// ParamsConfigMap is the name of the ConfigMap with FastCGI parameters, with or without its namespace.
	ParamsConfigMap string
	// SourceRanges lists the client addresses that are allowed or denied.
	SourceRanges ir.SourceRanges
	// UsersSecret is the Secret that contains the users for auth-type. It is set by package ingress, which knows the
	// namespace of the Ingress.
	UsersSecret ir.Name
	// CustomHeaders configures additional response headers.
	CustomHeaders CustomHeaders
	// ErrorPages configures which error responses are replaced.
	ErrorPages ErrorPages
	// Canary configures which requests the Ingress gets as a canary. It is nil if the Ingress is not a canary.
	Canary *ir.Canary
	// IgnoreSnippets is true if Ingresses with snippets are served without applying the snippets, whatever the snippets
	// contain. It is an option of the administrator; no annotation changes it.
	IgnoreSnippets bool
	// HTTP holds the variables that the ConfigMap key http-snippet defines. Values with nginx variables may contain
	// them. No annotation changes it.
	HTTP *snippets.HTTP
	// Gate says which annotations are allowed. It is set in the ConfigMap; no annotation changes it.
	Gate Gate
	// Closed is true if all requests for the Ingress get 503. ClosedBy describes the ConfigMap and the problem because
	// of which it is true in the default settings; no annotation changes it.
	Closed   bool
	ClosedBy string
	// Asked holds the values of annotations from which Finish derives the final settings.
	Asked Asked
}

// Finish derives the final settings from the values in Asked. It may be called again after values in Asked have
// changed.
func (s *Settings) Finish() {
	for _, finish := range finishers {
		finish(s)
	}
}

// Filters returns the filters for one path of the Ingress, in the order in which they process a request.
func (s *Settings) Filters(path string) []ir.Filter {
	return s.filtersOf(phases, path)
}

// filtersOf returns the filters that the given phases add for one path.
func (s *Settings) filtersOf(phases []phase, path string) []ir.Filter {
	var all []ir.Filter
	for i := range phases {
		all = append(all, phases[i].of(s, path)...)
	}
	return all
}

// ForwardingFor returns the settings for forwarding requests for one path of the Ingress.
func (s *Settings) ForwardingFor(path string) ir.Forwarding {
	f := s.Forwarding
	if !s.Rewrites(path) {
		f.Prefix = ""
	}
	return f
}

// Parse parses the annotations of an Ingress that the administrator allows. Settings without an annotation keep their
// value from defaults. Invalid annotations are ignored and reported in the returned problems.
func Parse(defaults Settings, all map[string]string) (*Settings, []report.Problem) {
	r := option.Reading[Settings]{Settings: &defaults, Invalid: report.InvalidAnnotation}
	var refusals []*Annotation
	// Other snippets may contain the variables that the server-snippet sets.
	for _, key := range option.Names(all, serverSnippetKey) {
		name, ours := nameOf(key)
		if !ours {
			continue
		}
		row, field := Table.Find(name), report.AnnotationField(key)
		switch decision, why := defaults.judge(name, row, all[key]); {
		case decision == refused:
			refusals = append(refusals, row)
			r.Refuse(report.AnnotationNotAllowed, field, why)
		case decision == dropped:
			r.Warn(report.AnnotationNotAllowed, field, why)
		case row != nil:
			r.Read(row, all[key], field)
		case slices.Contains(known, name) && requestsNothing(all[key]):
		default:
			r.Warn(report.UnknownAnnotation, field, unknown(key))
		}
	}
	// Do this last, so that no other annotation undoes it.
	for _, row := range refusals {
		defaults.refuse(row)
	}
	if l := &defaults.Asked.Snippets.Location; l.Shared != "" {
		l.Annotated = annotated(all)
	}
	defaults.Finish()
	defaults.finishFirewall()
	defaults.checkLocation()
	defaults.checkServer()
	r.Check()
	return &defaults, append(r.Problems, defaults.Asked.Snippets.Location.overridden()...)
}

// annotated returns the names of the annotations that have a value.
func annotated(all map[string]string) (names []string) {
	for key, value := range all {
		if name, ours := nameOf(key); ours && strings.TrimSpace(value) != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
