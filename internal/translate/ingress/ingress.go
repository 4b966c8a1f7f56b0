// Package ingress translates networking.k8s.io/v1 Ingresses. Translate returns the settings of one Ingress, and package
// hosts merges the settings of all Ingresses for one host. It does no I/O.
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
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// Options decide which Ingresses are ours, and provide the settings that all Ingresses share.
type Options struct {
	// ControllerName is the spec.controller of the IngressClasses that are ours.
	ControllerName string
	// ClassName is the value of the older annotation kubernetes.io/ingress.class that is ours.
	ClassName string
	// ClassByName also serves Ingresses that name ClassName in spec.ingressClassName, whatever spec.controller of the
	// IngressClass is.
	ClassByName bool
	// WatchWithoutClass also serves Ingresses that name no class.
	WatchWithoutClass bool
	// Namespaces selects, by their labels, the namespaces whose Ingresses may be ours. Nil selects all namespaces.
	Namespaces labels.Selector
	// DisableCatchAll rejects rules and default backends that would serve every host.
	DisableCatchAll bool
	// HTTPSPort is the port of our HTTPS listener, for redirects that contain it. Zero omits the port.
	HTTPSPort int
	// Passthrough allows Ingresses to pass TLS connections through to their backends.
	Passthrough bool
	// ExternalNames has the same values as settings.Config.ExternalNames.
	ExternalNames string
	// Issuance decides which hosts get a certificate from an issuer.
	Issuance Issuance
	// Defaults are the settings of an Ingress without annotations. They come from the ConfigMap.
	Defaults annotations.Settings
	// Classes holds, by name, the classes of ours that have parameters.
	Classes map[string]Class
	// Folder means that the objects come from files. Then a class named ClassName is ours even if there is no such
	// IngressClass, since the manifests of an application usually lack it. And an Ingress that is not ours gets a
	// message with the reason, since no other controller serves it.
	Folder bool
}

// Result is the translation of one Ingress.
type Result struct {
	hosts.Contribution
	// Object is the object of the Contribution.
	Object *networkingv1.Ingress
	// Ours is false for an Ingress of another controller. Then the result has only Refs, and a problem if the class
	// does not exist or if the objects come from a folder.
	Ours bool
	// Class is the name of the Ingress's class. It is empty for an Ingress that is served without a class.
	Class string
	// Backends are the IDs of all backends that the Ingress names, whether or not its paths are served.
	Backends []string
	// LoadBalancing configures how the endpoints of Backends are chosen. Balances means that the Ingress's own
	// annotations configure it.
	LoadBalancing ir.LoadBalancing
	Balances      bool
	// Mains are the main Ingresses whose requests a canary shares. Package translate sets it.
	Mains    []ir.Ref
	Problems []report.Problem
	// CertificateProblems are problems with the certificates that clients get in TLS handshakes.
	CertificateProblems []CertificateProblem
	// Refs are the objects on which the result depends, whether or not they exist.
	Refs []ir.Ref
}

// reading is the state of one call of Translate.
type reading struct {
	*Result
	snapshot    *snapshot.Snapshot
	options     Options
	annotations *annotations.Settings
	refs        map[ir.Ref]bool
	// listed is the set of hosts that entries of spec.tls cover.
	listed map[string]bool
	// params are the FastCGI parameters.
	params map[string]string
	// pages replaces error responses. Nil leaves them unchanged.
	pages *ir.ErrorPages
	// unreadable means that reading the Ingress failed, so that this reading makes its paths return 503.
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
		// A canary takes everything except its paths and backends from its main Ingress.
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
	r.appRoot()
	r.tls()
	r.PatternSize, r.AliasSize = r.patternSize(), r.aliasSize()
}

func (r *reading) rules() {
	for i := range r.Object.Spec.Rules {
		r.rule(&r.Object.Spec.Rules[i], fmt.Sprintf("spec.rules[%d]", i))
	}
}

// settings parses the annotations. Settings without an annotation come from the class or the ConfigMap.
func (r *reading) settings() {
	defaults := r.defaults()
	defaults.Ingress = ir.Name{Namespace: r.Object.Namespace, Name: r.Object.Name}
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
	settings, problems := annotations.Parse(defaults, r.Object.Annotations)
	if settings.Canary != nil {
		settings, problems = r.canarySettings(defaults)
	}
	r.annotations, r.Canary = settings, settings.Canary
	r.LoadBalancing = settings.LoadBalancing
	r.Balances = !reflect.DeepEqual(settings.LoadBalancing, defaults.LoadBalancing)
	r.TLS, r.AsksCiphers = settings.TLS, !slices.Equal(settings.TLS.Ciphers, defaults.TLS.Ciphers)
	r.Problems = append(r.Problems, problems...)
	if r.Canary == nil {
		r.readConfigMaps()
	}
}

// defaults returns the settings of an Ingress without annotations.
func (r *reading) defaults() annotations.Settings {
	if class, ok := r.options.Classes[r.Class]; ok {
		return class.Defaults
	}
	return r.options.Defaults
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

// Host returns the host of a rule in the form of the model: in lower case, without a trailing dot. It returns an error
// if the host is not a valid host name or wildcard.
func Host(host string) (string, error) {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "" {
		if host == "" {
			return "", nil
		}
		return "", fmt.Errorf("%q is not a host name", host)
	}
	// strings.ToLower turns the Kelvin sign into k, but the sign is not allowed in a host name.
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

// with adds the settings from annotations to a path.
func (r *reading) with(p *hosts.Path) *hosts.Path {
	if r.unreadable {
		p.Regex = r.annotations.Regex(p.Match.Path)
		return p.Closed()
	}
	p.Filters, p.Regex = r.annotations.Filters(p.Match.Path), r.annotations.Regex(p.Match.Path)
	p.Proxy = ir.Proxy{Attempts: r.annotations.Attempts, Forwarding: r.annotations.ForwardingFor(p.Match.Path),
		Params: r.params}
	p.ErrorPages = r.pages
	p.Redirect, p.RedirectAlways = r.annotations.RedirectFor(p.Match.Path, r.options.HTTPSPort)
	p.Unlogged, p.Tracing = r.annotations.Unlogged, r.annotations.TracingOf()
	return p
}

// appRoot sets Root, which handles requests for exactly "/", if the annotation app-root is set.
func (r *reading) appRoot() {
	if filters := r.annotations.FiltersOfRoot(); filters != nil && !r.unreadable {
		r.Root = &hosts.Path{Filters: filters}
		r.Root.Tracing = r.annotations.TracingOf()
		r.Root.Redirect, r.Root.RedirectAlways = r.annotations.RedirectFor("/", r.options.HTTPSPort)
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

// defaultBackend adds the default backend. It serves requests for the hosts of the rules that no path matches; without
// rules it serves every host. Annotations apply to it as to a path. But as in ingress-nginx, rewrites do not apply if
// it serves every host.
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

// rewrites reports whether a filter comes from rewrite-target.
func rewrites(f ir.Filter) bool {
	switch f.(type) {
	case ir.URLRewrite, ir.RewriteRedirect:
		return true
	}
	return false
}

// canarySettings parses only the annotations that have an effect on a canary. The others are not reported as a mistake,
// since many canaries are copies of their main Ingress with all its annotations.
func (r *reading) canarySettings(defaults annotations.Settings) (*annotations.Settings, []report.Problem) {
	counting, void := annotations.OfCanary(r.Object.Annotations)
	if len(void) > 0 {
		r.problem(report.Info, report.InvalidAnnotation, "metadata.annotations",
			"these annotations have no effect on a canary, which uses the annotations of its main Ingress: %s",
			strings.Join(void, ", "))
	}
	return annotations.Parse(defaults, counting)
}

// closedCanary returns a canary without requests for a canary that cannot be read, or nil for other Ingresses. Such a
// canary must not be served as a main Ingress.
func (r *reading) closedCanary() *ir.Canary {
	if r.annotations.Canary == nil {
		return nil
	}
	return &ir.Canary{Closed: true}
}
