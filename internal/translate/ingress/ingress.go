// Package ingress translates Ingresses (networking.k8s.io/v1). Translate returns the settings of one Ingress. Package
// hosts then merges the settings of all Ingresses for the same host. This package does no I/O.
package ingress

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// Options select the Ingresses that this controller serves, and contain settings that apply to all of them.
type Options struct {
	// ControllerName is the value of spec.controller in the IngressClasses of this controller.
	ControllerName string
	// ClassName is the value of the older annotation kubernetes.io/ingress.class that selects this controller.
	ClassName string
	// ClassByName means that Ingresses with ClassName in spec.ingressClassName are served even if an IngressClass with
	// this name does not exist or belongs to another controller.
	ClassByName bool
	// WatchWithoutClass means that Ingresses without a class are served as well.
	WatchWithoutClass bool
	// Namespaces selects the namespaces whose Ingresses are served, by their labels. Nil selects all namespaces.
	Namespaces labels.Selector
	// DisableCatchAll rejects rules without a host, and default backends of Ingresses without rules.
	DisableCatchAll bool
	// HTTPSPort is the port of the HTTPS listener. Redirects to HTTPS may contain it. If it is zero, they never do.
	HTTPSPort int
	// Passthrough allows the annotation ssl-passthrough.
	Passthrough bool
	// ExternalNames restricts the targets of Services of type ExternalName. The values are the same as for
	// settings.Config.ExternalNames.
	ExternalNames string
	// DefaultChains lists the handler chains that run for Ingresses whatever their annotations contain.
	DefaultChains []settings.DefaultChain
	// Issuance configures which hosts get a certificate from an issuer.
	Issuance Issuance
	// Defaults are the settings that apply to an Ingress without annotations. They come from the ConfigMap.
	Defaults annotations.Settings
	// Classes contains the settings of each IngressClass that belongs to this controller and has parameters. The keys
	// are the names of the IngressClasses.
	Classes map[string]Class
	// Folder is true if the objects come from a folder of manifests. In this case, Ingresses with the class ClassName
	// are served even if there is no such IngressClass, because the manifests of an application usually do not contain
	// it. An Ingress that is not served gets a message with the reason, because no other controller can serve it.
	Folder bool
}

// Result is the translation of one Ingress.
type Result struct {
	hosts.Contribution
	// Object is the Ingress. It is also in the field Object of the embedded Contribution.
	Object *networkingv1.Ingress
	// Ours is false if another controller serves the Ingress. The result then contains only Refs, and a problem if the
	// class does not exist or if the objects come from a folder of manifests.
	Ours bool
	// Class is the class of the Ingress. It is empty if the Ingress has no class and is served nevertheless.
	Class string
	// Backends are the IDs of all backends to which the Ingress refers, even if its paths are not served.
	Backends []string
	// LoadBalancing configures how an endpoint of Backends is chosen. Balances is true if annotations of the Ingress
	// configure it, and false if it comes from the default settings.
	LoadBalancing ir.LoadBalancing
	Balances      bool
	// Mains are the main Ingresses whose requests this Ingress shares if it is a canary. Package translate sets the
	// field.
	Mains    []ir.Ref
	Problems []report.Problem
	// Annotations is the part of Problems that annotations.Parse has found. It depends on no other object, apart from
	// the ConfigMaps with the default settings.
	Annotations []report.Problem
	// CertificateProblems are problems with the certificates of the hosts.
	CertificateProblems []CertificateProblem
	// Refs are the objects on which the result depends, including objects that do not exist.
	Refs []ir.Ref
}

// reading is the state of one call to Translate.
type reading struct {
	*Result
	snapshot    *snapshot.Snapshot
	options     Options
	annotations *annotations.Settings
	refs        map[ir.Ref]bool
	// listed is the set of hosts to which an entry of spec.tls applies.
	listed map[string]bool
	// params are the FastCGI parameters from the ConfigMap.
	params map[string]string
	// pages configures the replacement of error responses. If it is nil, error responses are not replaced.
	pages *ir.ErrorPages
	// unreadable is true during the second attempt to read an Ingress, after the first attempt has panicked. All paths
	// then return 503.
	unreadable bool
}

func newReading(s *snapshot.Snapshot, object *networkingv1.Ingress, o Options) *reading {
	r := &reading{
		Result: &Result{Object: object, Contribution: hosts.Contribution{
			Object: object, Paths: map[string][]*hosts.Path{}, Certificates: map[string]*ir.Certificate{},
		}},
		snapshot: s, options: o, refs: map[ir.Ref]bool{}, listed: map[string]bool{},
	}
	r.TLSHosts, r.AllTLS = tlsHosts(object.Spec.TLS)
	return r
}

func (r *reading) read() {
	if r.Ours = r.selected() && r.ours(r.options); !r.Ours {
		return
	}
	r.settings()
	if r.Canary != nil {
		// Read only the paths and backends of a canary. All other settings come from its main Ingress.
		r.rules()
		r.defaultBackend()
		r.PatternSize = r.patternSize()
		return
	}
	r.clientAuth()
	r.backendTLS()
	r.users()
	r.errorPages()
	r.Closed = r.annotations.Closed
	r.Aliases, r.WWW = r.annotations.Aliases, r.annotations.WWWStatus()
	r.passthrough()
	r.rules()
	r.defaultBackend()
	r.otherPaths()
	r.appRoot()
	r.server()
	r.tls()
	r.onDemand()
	r.PatternSize, r.AliasSize = r.patternSize(), r.aliasSize()
}

func (r *reading) rules() {
	for i := range r.Object.Spec.Rules {
		r.rule(&r.Object.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i))
	}
}

// settings parses the annotations. Settings without an annotation come from the ConfigMap of the class, or else from
// the ConfigMap for all Ingresses.
func (r *reading) settings() {
	defaults := r.defaults()
	defaults.Ingress = ir.Name{Namespace: r.Object.Namespace, Name: r.Object.Name}
	defaults.PathGroups, defaults.DefaultChains = r.pathGroups(), r.defaultChains()
	if class, ok := r.options.Classes[r.Class]; ok {
		if class.Unread {
			r.problem(report.Error, report.InvalidParameters, classField,
				"the parameters of the IngressClass %s are invalid: all requests for this Ingress get 503, because "+
					"the parameters may restrict access. See the verdict on the class",
				r.Class)
		}
		if class.ConfigMap.Name != "" {
			r.depend(class.ConfigMap)
		}
	}
	if defaults.ClosedBy != "" {
		r.problem(report.Error, report.UnsupportedAccessControl, "",
			"all requests for this Ingress get 503 because of the %s", defaults.ClosedBy)
	}
	settings, problems := annotations.Parse(defaults, r.Object.Annotations)
	if settings.Canary != nil {
		settings, problems = r.canarySettings(defaults)
	}
	r.annotations, r.Canary, r.DefaultChains = settings, settings.Canary, settings.DefaultChainFilters()
	r.LoadBalancing = settings.LoadBalancing
	r.Balances = !reflect.DeepEqual(settings.LoadBalancing, defaults.LoadBalancing)
	r.TLS, r.AsksCiphers = settings.TLS, !slices.Equal(settings.TLS.Ciphers, defaults.TLS.Ciphers)
	r.Problems, r.Annotations = append(r.Problems, problems...), problems
	if r.Canary == nil {
		r.readConfigMaps()
	}
}

// defaults returns the settings that apply to the Ingress if it has no annotations.
func (r *reading) defaults() annotations.Settings {
	if class, ok := r.options.Classes[r.Class]; ok {
		return class.Defaults
	}
	return r.options.Defaults
}

// defaultChains returns the names of the handler chains that the administrator has set for the Ingress.
func (r *reading) defaultChains() (names []string) {
	for i := range r.options.DefaultChains {
		if d := &r.options.DefaultChains[i]; d.Selects(r.Object.Namespace, r.Class) {
			names = append(names, d.Chain)
		}
	}
	return names
}

func (r *reading) origin() ir.Ref {
	return ir.Ref{Kind: kinds.Ingress, Namespace: r.Object.Namespace, Name: r.Object.Name}
}

func (r *reading) problem(severity report.Severity, reason report.Reason, field, message string, args ...any) {
	r.Problems = append(r.Problems, report.Problem{
		Severity: severity, Reason: reason, Field: field, Message: fmt.Sprintf(message, args...),
	})
}

func (r *reading) depend(ref ir.Ref) {
	if !r.refs[ref] {
		r.refs[ref] = true
		r.Refs = append(r.Refs, ref)
	}
}

func (r *reading) rule(rule *networkingv1.IngressRule, field string) {
	host, err := Host(rule.Host)
	if err != nil {
		r.problem(report.Error, report.InvalidHost, field+".host", "%v", err)
		return
	}
	if host == "" && r.options.DisableCatchAll {
		r.problem(report.Error, report.CatchAllRefused, field+".host",
			"the rule has no host and is ignored, because the option disable_catch_all forbids rules for every "+
				"host: add a host")
		return
	}
	if _, ok := r.Paths[host]; !ok {
		r.Paths[host] = nil
	}
	if rule.HTTP == nil {
		if r.Object.Spec.DefaultBackend == nil {
			r.problem(report.Warning, report.InvalidPath, field+".http",
				"the rule has no paths: requests for %s get 404",
				hosts.OrEvery(host))
		}
		return
	}
	for i := range rule.HTTP.Paths {
		if p := r.path(&rule.HTTP.Paths[i], fmt.Sprintf("%s.http.paths[%d]", field, i)); p != nil {
			r.Paths[host] = append(r.Paths[host], p)
		}
	}
}

// Host normalizes the host of a rule: the result is in lower case and has no trailing dot. It returns an error if the
// host is neither a valid host name nor a wildcard.
func Host(host string) (string, error) {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "" {
		if host == "" {
			return "", nil
		}
		return "", fmt.Errorf("%q is not a host name", host)
	}
	// strings.ToLower converts the Kelvin sign (U+212A) to k, but host names must not contain this character.
	if strings.ContainsRune(host, '\u212a') || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
		return "",
			fmt.Errorf("%q is not a host name: write letters, digits, - and ., or a wildcard such as *.example.com",
				host)
	}
	return name, nil
}

func (r *reading) path(p *networkingv1.HTTPIngressPath, field string) *hosts.Path {
	match, err := matchOf(p)
	if err != nil {
		r.problem(report.Error, report.InvalidPath, field, "%v; the path is ignored", err)
		return nil
	}
	backend := r.backend(&p.Backend, field+".backend", r.passesRoot(match))
	if backend == nil {
		return nil
	}
	return r.with(&hosts.Path{Match: match, Backend: backend, Field: field})
}

// The method with adds the settings from annotations to the path p, and returns p.
func (r *reading) with(p *hosts.Path) *hosts.Path {
	if r.unreadable {
		p.Regex = r.annotations.Regex(p.Match.Path)
		return p.Closed()
	}
	p.Filters, p.Regex = r.annotations.Filters(p.Match.Path), r.annotations.Regex(p.Match.Path)
	p.Early = len(r.annotations.FiltersBeforeServer(p.Match.Path))
	p.BeforeLimits = len(r.annotations.FiltersBeforeLimits(p.Match.Path))
	p.Proxy = ir.Proxy{Attempts: r.annotations.Attempts, Forwarding: r.annotations.ForwardingFor(p.Match.Path),
		Params: r.params}
	p.ErrorPages = r.pages
	p.Redirect, p.RedirectAlways = r.annotations.RedirectFor(p.Match.Path, p.Filters, r.options.HTTPSPort)
	p.RoutePolicy = r.annotations.RoutePolicy
	return p
}

// otherPaths sets the redirect to HTTPS for requests that no path matches. As in ingress-nginx, it is the redirect of
// the path "/".
func (r *reading) otherPaths() {
	if !r.unreadable {
		filters := r.annotations.Filters("/")
		r.Redirect, r.RedirectAlways = r.annotations.RedirectFor("/", filters, r.options.HTTPSPort)
	}
}

// appRoot sets r.Root, which handles requests for exactly "/", if the Ingress has the annotation app-root.
func (r *reading) appRoot() {
	if filters := r.annotations.FiltersOfRoot(); filters != nil && !r.unreadable {
		early := len(r.annotations.FiltersBeforeServer("/"))
		r.Root = &hosts.Path{Filters: filters, Early: early, BeforeLimits: len(filters),
			Redirect: r.Redirect, RedirectAlways: r.RedirectAlways, ErrorPages: r.pages,
			RoutePolicy: r.annotations.RoutePolicy}
	}
}

func matchOf(p *networkingv1.HTTPIngressPath) (ir.PathMatch, error) {
	match := ir.PathMatch{Type: ir.MatchPrefix, Path: p.Path}
	if match.Path == "" {
		match.Path = "/"
	}
	if match.Path[0] != '/' {
		return match, fmt.Errorf("the path %q does not start with a slash", p.Path)
	}
	if !utf8.ValidString(match.Path) || strings.ContainsFunc(match.Path, nginx.IsControl) {
		return match, fmt.Errorf("the path %q contains a control character", p.Path)
	}
	if p.PathType == nil {
		return match, nil
	}
	switch *p.PathType {
	case networkingv1.PathTypeExact:
		match.Type = ir.MatchExact
	case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
	default:
		return match, fmt.Errorf("the pathType %q is invalid: write Exact, Prefix or ImplementationSpecific",
			*p.PathType)
	}
	return match, nil
}

// defaultBackend adds the default backend of the Ingress. If the Ingress has rules, the default backend serves requests
// for their hosts that no path matches. Otherwise it serves requests for every host. Annotations apply to the default
// backend as they apply to paths. As in ingress-nginx, rewrite-target is an exception: it has no effect on a default
// backend that serves every host.
func (r *reading) defaultBackend() {
	const field = "spec.defaultBackend"
	if r.Object.Spec.DefaultBackend == nil {
		if len(r.Object.Spec.Rules) == 0 {
			r.problem(report.Warning, report.InvalidBackend, "spec",
				"the Ingress has neither rules nor a default backend: nothing is served")
		}
		return
	}
	if len(r.Object.Spec.Rules) == 0 && r.options.DisableCatchAll {
		r.problem(report.Error, report.CatchAllRefused, field,
			"a default backend without rules matches every host, which the option disable_catch_all forbids: add "+
				"rules with hosts")
		return
	}
	backend := r.backend(r.Object.Spec.DefaultBackend, field, false)
	if backend == nil {
		return
	}
	p := r.with(&hosts.Path{Match: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}, Backend: backend, Last: true,
		Field: field})
	if len(r.Object.Spec.Rules) == 0 {
		p.Regex = false
		p.Filters = slices.DeleteFunc(p.Filters, rewrites)
		r.Fallback = p
		r.hostless()
		return
	}
	for host := range r.Paths {
		r.Paths[host] = append(r.Paths[host], p)
	}
}

// The function rewrites reports whether a filter comes from the annotation rewrite-target.
func rewrites(f ir.Filter) bool {
	switch f.(type) {
	case ir.URLRewrite, ir.RewriteRedirect:
		return true
	}
	return false
}

// canarySettings parses the annotations that take effect on a canary. All other annotations only cause a message of
// severity Info, because many canaries are copies of their main Ingress, including its annotations.
func (r *reading) canarySettings(defaults annotations.Settings) (*annotations.Settings, []report.Problem) {
	counting, void := defaults.OfCanary(r.Object.Annotations)
	if len(void) > 0 {
		r.problem(report.Info, report.InvalidAnnotation, "metadata.annotations",
			"these annotations have no effect on a canary, which uses the annotations of its main Ingress: %s",
			strings.Join(void, ", "))
	}
	return annotations.Parse(defaults, counting)
}

// closedCanary is called for an Ingress that cannot be read. If the Ingress is a canary, closedCanary returns canary
// settings that send it no requests, so that it is not served as a main Ingress. Otherwise it returns nil.
func (r *reading) closedCanary() *ir.Canary {
	if r.annotations.Canary == nil {
		return nil
	}
	return &ir.Canary{Closed: true}
}
