// Package ingress reads networking.k8s.io/v1 Ingresses, each by itself: Translate says what one asks for. Package hosts joins
// what all of them say of one host. It is pure.
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

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/hosts"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/kinds"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// Options decide which Ingresses are ours.
type Options struct {
	// ControllerName is the spec.controller of the IngressClasses that are ours.
	ControllerName string
	// ClassName is the value of the older annotation kubernetes.io/ingress.class that is ours.
	ClassName string
	// ClassByName serves Ingresses that name ClassName in spec.ingressClassName, too, whatever the IngressClass says.
	ClassByName bool
	// WatchWithoutClass takes Ingresses that name no class, too.
	WatchWithoutClass bool
	// Namespaces selects those whose Ingresses may be ours by their labels; nil selects all.
	Namespaces labels.Selector
	// DisableCatchAll refuses what would answer for every host.
	DisableCatchAll bool
	// HTTPSPort is the port of our HTTPS, for redirects that name it; zero is none.
	HTTPSPort int
	// Passthrough lets an Ingress hand TLS connections to its backend.
	Passthrough bool
	// ExternalNames is that of settings.Config.
	ExternalNames string
	// Issuance says which hosts get a certificate from an issuer.
	Issuance Issuance
	// Defaults are the settings of an Ingress that has no annotations: what the ConfigMap says.
	Defaults annotations.Settings
	// Classes has, by their names, the classes of ours that have parameters.
	Classes map[string]Class
	// Folder says that the objects come from files. A class named ClassName is ours then if there is no such object, since
	// the manifests of an application have none; and an Ingress that is not ours is told why, since no other controller
	// serves it.
	Folder bool
}

// Result is what one Ingress asks for.
type Result struct {
	hosts.Contribution
	// Object is that of the Contribution.
	Object *networkingv1.Ingress
	// Ours is false for an Ingress of another controller. It has nothing else then but Refs, and a problem if its class
	// does not exist, or if the objects come from a folder.
	Ours bool
	// Class is the name of its class. It is empty for an Ingress that is served without one.
	Class string
	// Backends are the IDs of all backends that the Ingress names, whether its paths answer or not.
	Backends []string
	// LoadBalancing is how it wants their endpoints to be chosen. Balances says that its own annotations ask for that.
	LoadBalancing ir.LoadBalancing
	Balances      bool
	// Mains are the Ingresses with whose requests a canary shares. Package translate knows them.
	Mains    []ir.Ref
	Problems []report.Problem
	// CertificateProblems are those with what clients are shown in handshakes.
	CertificateProblems []CertificateProblem
	// Refs are the objects that the result depends on, whether they exist or not.
	Refs []ir.Ref
}

// reading is one Ingress in the hands of Translate.
type reading struct {
	*Result
	snapshot    *snapshot.Snapshot
	options     Options
	annotations *annotations.Settings
	refs        map[ir.Ref]bool
	// listed are the hosts that an entry of tls is about.
	listed map[string]bool
	// params are those of FastCGI.
	params map[string]string
	// pages are what clients get in place of errors.
	pages *ir.ErrorPages
	// unreadable says that reading the Ingress fails, and that this reading closes it.
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
		// All but its paths and backends are those of the main Ingress.
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

// settings reads the annotations, on top of what the class or the ConfigMap says.
func (r *reading) settings() {
	defaults := r.defaults()
	defaults.Ingress = ir.Name{Namespace: r.Object.Namespace, Name: r.Object.Name}
	if class, ok := r.options.Classes[r.Class]; ok {
		if class.Unread {
			r.problem(report.Error, report.InvalidParameters, classField, "the parameters of the IngressClass %s cannot be read: all requests "+
				"for this Ingress get 503, because they may keep requests out. The verdict on the class says why", r.Class)
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

// defaults are the settings without annotations.
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
			"the rule has no host, and rules for every host are turned off by disable_catch_all: give it a host; the rule is left out")
		return
	}
	if _, ok := r.Paths[host]; !ok {
		r.Paths[host] = nil
	}
	if rule.HTTP == nil {
		if r.Object.Spec.DefaultBackend == nil {
			r.problem(report.Warning, report.InvalidPath, field+".http", "the rule has no paths: requests for %s get 404",
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

// Host brings the host of a rule into the form of the model.
func Host(host string) (string, error) {
	name := strings.TrimSuffix(strings.ToLower(host), ".")
	if name == "" {
		if host == "" {
			return "", nil
		}
		return "", fmt.Errorf("%q is no host name", host)
	}
	// The Kelvin sign is k in lower case, and yet no letter of a host name.
	if strings.ContainsRune(host, '\u212a') || len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
		return "", fmt.Errorf("%q is no host name: it may have letters, digits, - and ., and a wildcard is *. and a name", host)
	}
	return name, nil
}

func (r *reading) path(p *networkingv1.HTTPIngressPath, field string) *hosts.Path {
	match, err := matchOf(p)
	if err != nil {
		r.problem(report.Error, report.InvalidPath, field, "%v; the path is left out", err)
		return nil
	}
	backend := r.backend(&p.Backend, field+".backend", r.passesRoot(match))
	if backend == nil {
		return nil
	}
	return r.with(&hosts.Path{Match: match, Backend: backend, Field: field})
}

// with adds what the annotations say of a path.
func (r *reading) with(p *hosts.Path) *hosts.Path {
	if r.unreadable {
		p.Regex = r.annotations.Regex(p.Match.Path)
		return p.Closed()
	}
	p.Filters, p.Regex = r.annotations.Filters(p.Match.Path), r.annotations.Regex(p.Match.Path)
	p.Proxy = ir.Proxy{Attempts: r.annotations.Attempts, Forwarding: r.annotations.ForwardingFor(p.Match.Path), Params: r.params}
	p.ErrorPages = r.pages
	p.Redirect, p.RedirectAlways = r.annotations.RedirectFor(p.Match.Path, r.options.HTTPSPort)
	p.Unlogged, p.Tracing = r.annotations.Unlogged, r.annotations.TracingOf()
	return p
}

// appRoot is for requests for "/" itself, whichever paths there are.
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
		return match, fmt.Errorf("the path %q does not begin with a slash", p.Path)
	}
	if !utf8.ValidString(match.Path) || strings.ContainsFunc(match.Path, nginx.IsControl) {
		return match, fmt.Errorf("the path %q has a control character in it", p.Path)
	}
	if p.PathType == nil {
		return match, nil
	}
	switch *p.PathType {
	case networkingv1.PathTypeExact:
		match.Type = ir.MatchExact
	case networkingv1.PathTypePrefix, networkingv1.PathTypeImplementationSpecific:
	default:
		return match, fmt.Errorf("there is no pathType %q: Exact, Prefix and ImplementationSpecific are the types", *p.PathType)
	}
	return match, nil
}

// defaultBackend answers for what no path of the rules' hosts matches; without rules it answers for every host. The
// annotations hold for it as for a path: as in ingress-nginx, only rewrites do not where it answers for every host.
func (r *reading) defaultBackend() {
	const field = "spec.defaultBackend"
	if r.Object.Spec.DefaultBackend == nil {
		if len(r.Object.Spec.Rules) == 0 {
			r.problem(report.Warning, report.InvalidBackend, "spec", "the Ingress has neither rules nor a default backend: nothing is served")
		}
		return
	}
	if len(r.Object.Spec.Rules) == 0 && r.options.DisableCatchAll {
		r.problem(report.Error, report.CatchAllRefused, field,
			"a default backend without rules answers for every host, which is turned off by disable_catch_all: write rules with hosts")
		return
	}
	backend := r.backend(r.Object.Spec.DefaultBackend, field, false)
	if backend == nil {
		return
	}
	p := r.with(&hosts.Path{Match: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}, Backend: backend, Last: true, Field: field})
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

// rewrites says whether a filter is that of rewrite-target.
func rewrites(f ir.Filter) bool {
	switch f.(type) {
	case ir.URLRewrite, ir.RewriteRedirect:
		return true
	}
	return false
}

// canarySettings reads the annotations that a canary has itself. Many a canary is a copy of its main Ingress with all of the
// annotations, so the others are no mistake.
func (r *reading) canarySettings(defaults annotations.Settings) (*annotations.Settings, []report.Problem) {
	counting, void := annotations.OfCanary(r.Object.Annotations)
	if len(void) > 0 {
		r.problem(report.Info, report.InvalidAnnotation, "metadata.annotations",
			"a canary has these annotations from its main Ingress, and its own have no effect: %s", strings.Join(void, ", "))
	}
	return annotations.Parse(defaults, counting)
}

// closedCanary takes the place of a canary that cannot be read. It must not answer as if it were a main Ingress.
func (r *reading) closedCanary() *ir.Canary {
	if r.annotations.Canary == nil {
		return nil
	}
	return &ir.Canary{Closed: true}
}
