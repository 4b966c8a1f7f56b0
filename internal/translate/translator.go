// Package translate translates Kubernetes objects into the model in package ir. It does no I/O. The results for each
// Ingress and each host are cached, so that after a change only the affected Ingresses and hosts are translated again.
// The output is the same as without the cache.
package translate

import (
	"iter"
	"maps"
	"reflect"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/ownership"
	"github.com/k8singress/k8singress/internal/translate/streams"
)

// Translator translates consecutive snapshots of the same store. It is not safe for concurrent use.
//
// A translation has two steps. The first step translates each Ingress. The second step merges, for each host and each
// backend, the settings of all Ingresses that refer to the host or backend. After a change, both steps are repeated
// only for the affected Ingresses, hosts and backends.
type Translator struct {
	options Options
	// begun is true after the first call of Translate.
	begun bool
	// seen is the sequence number of the last translated snapshot.
	seen uint64

	defaults  *defaults
	results   shrinking.Map[ir.Ref, *ingress.Result]
	dependent groups[ir.Ref]
	ofHost    groups[string]
	fallbacks shrinking.Map[ir.Ref, struct{}]
	merged    shrinking.Map[string, *hosts.Merged]
	// inputs is nil unless the option Views is set.
	inputs *inputs
	// The field below maps each wildcard to another map: from namespaces to the number of rules that the namespace has
	// for hosts below the wildcard.
	below    shrinking.Map[string, *shrinking.Map[string, int]]
	issuance *issuance
	streams  *ports
	// listening are the ports that http-snippet opens.
	listening []*ir.ListenerGroup
	patterns  *patterns
	// aliases limits the total size of the regular expressions in aliases. The field patterns limits the total size of
	// all regular expressions, including aliases.
	aliases *patterns
	names   *names
	// issued holds the certificates from issuers that TCP ports need. portProblems holds the problems with these
	// certificates.
	issued       portCertificates
	portProblems map[ir.Ref][]report.Problem
	// The field routes maps backend IDs to the number of routes that use the backend. The field found maps backend IDs
	// to the backends before load balancing settings from annotations are applied.
	routes shrinking.Map[string, int]
	// The field heads maps sizes of request headers to the number of hosts with a snippet for this size.
	heads    heads
	found    shrinking.Map[string, *ir.Backend]
	users    *users
	balanced shrinking.Map[string, *balanced]
	// classes maps the name of each IngressClass to the cached result of the method parents.
	classes shrinking.Map[string, []report.Parent]

	config *ir.Config
	report *report.Report
}

// New returns a Translator without cached results.
func New() *Translator { return &Translator{} }

func (t *Translator) reset(o Options) {
	*t = Translator{
		options: o, begun: true, defaults: &defaults{}, issuance: &issuance{}, streams: &ports{},
		patterns: newPatterns(pattern.MaxNamespaceSize), aliases: newPatterns(pattern.MaxNamesSize), names: &names{},
		heads: heads{}, users: newUsers(),
		config: &ir.Config{}, report: &report.Report{},
	}
	if o.Views {
		t.inputs = &inputs{}
	}
}

// Translate returns the same as the function Translate, but uses cached results. Unchanged parts of the configuration
// and the report have the same pointers as in the previous call.
func (t *Translator) Translate(s *snapshot.Snapshot, o Options) (*ir.Config, *report.Report) {
	c := &change{hosts: set[string]{}, objects: set[ir.Ref]{}, backends: set[string]{}}
	if !t.begun || s.Since != t.seen || !t.options.sameExceptFollowed(o) {
		t.reset(o)
		t.readDefaults(c, s)
		for object := range snapshot.Of[*networkingv1.Ingress](s).All() {
			t.retranslate(c, s, refOf(object))
		}
		t.readStreams(c, s)
	} else {
		t.retranslateChanged(c, s, o.Followed)
	}
	t.seen = s.Sequence
	t.mergeHosts(c)
	t.boundPatterns(c)
	t.giveNames(c)
	t.issue(c, s)
	t.publish(c)
	return t.config, t.report
}

// Secrets yields the Secrets to which Ingresses and Services of the last snapshot refer, including Secrets that do not
// exist.
func (t *Translator) Secrets() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		for ref := range t.streams.refs {
			if ref.Kind == kinds.Secret && !yield(ref) {
				return
			}
		}
		for ref := range t.dependent.keys() {
			if ref.Kind == kinds.Secret && !yield(ref) {
				return
			}
		}
	}
}

// change collects the hosts, objects and backends whose results change during one call to Translate.
type change struct {
	hosts    set[string]
	objects  set[ir.Ref]
	backends set[string]
}

func refOf(object *networkingv1.Ingress) ir.Ref {
	return ir.Ref{Kind: kinds.Ingress, Namespace: object.Namespace, Name: object.Name}
}

// retranslateChanged translates all Ingresses again that have changed themselves, or that depend on a changed object.
// followed is the new value of the option Followed.
func (t *Translator) retranslateChanged(c *change, s *snapshot.Snapshot, followed []ir.FollowedPort) {
	again := set[ir.Ref]{}
	policy, ports := t.defaults.global.Streams, t.listeningPorts()
	touched := t.defaultsTouched(s) || !slices.Equal(t.options.Followed, followed)
	t.options.Followed = followed
	if touched && t.readDefaults(c, s) {
		again.add(t.results.Keys())
	}
	streamsToo := t.defaults.global.Streams != policy || !slices.Equal(ports, t.listeningPorts())
	for _, ref := range s.Changed {
		switch ref.Kind {
		case kinds.Ingress:
			again[ref] = struct{}{}
			continue
		case kinds.IngressClass:
			t.classes.Delete(ref.Name)
			// Every Ingress depends on all IngressClasses. This dependency is stored as a reference without a name.
			ref = ir.Ref{Kind: kinds.IngressClass}
		}
		again.add(t.dependent.of(ref))
		streamsToo = streamsToo || t.streams.dependOn(s, ref)
	}
	for ref := range again {
		t.retranslate(c, s, ref)
	}
	if streamsToo {
		t.readStreams(c, s)
	}
}

func (t *Translator) defaultsTouched(s *snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.Changed, func(ref ir.Ref) bool {
		_, ok := t.defaults.refs[ref]
		return ok || ref.Kind == kinds.IngressClass
	})
}

// readDefaults reads the settings from ConfigMaps again. It returns true if every Ingress must be translated again. If
// only the parameters of a class have changed, it returns false: the Ingresses of the class depend on the ConfigMap
// with the parameters, so they are translated again anyway.
func (t *Translator) readDefaults(c *change, s *snapshot.Snapshot) (all bool) {
	old := t.defaults
	t.defaults = readDefaults(s, t.options)
	for _, d := range []*defaults{old, t.defaults} {
		c.objects.add(maps.Keys(d.verdicts))
	}
	for b := range t.defaults.backends() {
		t.countBackend(c, b, 1)
	}
	for b := range old.backends() {
		t.countBackend(c, b, -1)
	}
	t.readListening(c)
	return !reflect.DeepEqual(old.ingress.Defaults, t.defaults.ingress.Defaults)
}

// retranslate translates one Ingress again, or removes its result if it was deleted. It adds the hosts and backends of
// the Ingress to c.
func (t *Translator) retranslate(c *change, s *snapshot.Snapshot, ref ir.Ref) {
	if old := t.results.Get(ref); old != nil {
		t.results.Delete(ref)
		t.note(c, &ref, old, (*groups[string]).remove, (*groups[ir.Ref]).remove)
	}
	if object, ok := snapshot.Of[*networkingv1.Ingress](s).Get(ref.Namespace, ref.Name); ok {
		result := ingress.Translate(s, object, t.defaults.ingress)
		t.results.Set(ref, result)
		t.note(c, &ref, result, (*groups[string]).add, (*groups[ir.Ref]).add)
	}
	c.objects[ref] = struct{}{}
}

// The method note adds an Ingress to the indexes of hosts and dependencies, or removes it from them. r is the result of
// translating the Ingress. named updates the index of hosts, and dependency updates the index of dependencies. Either
// both functions must add the Ingress, or both must remove it.
func (t *Translator) note(
	c *change, ref *ir.Ref, r *ingress.Result,
	named func(*groups[string], string, *ir.Ref), dependency func(*groups[ir.Ref], ir.Ref, *ir.Ref),
) {
	for _, other := range r.Refs {
		dependency(&t.dependent, other, ref)
	}
	for name := range r.Paths {
		named(&t.ofHost, name, ref)
		c.hosts[name] = struct{}{}
		t.noteBelow(c, name, r)
	}
	for name := range r.Certificates {
		named(&t.ofHost, name, ref)
		c.hosts[name] = struct{}{}
	}
	for i := range r.CertificateProblems {
		// These problems are only reported if the TLS connections of the hosts are not passed through. So add the
		// Ingress to the index of these hosts: it is then updated when a host changes.
		for _, name := range r.CertificateProblems[i].Hosts {
			named(&t.ofHost, name, ref)
			c.hosts[name] = struct{}{}
		}
	}
	current := t.results.Get(*ref) == r
	if current {
		t.patterns.count(*ref, r.PatternSize)
		t.aliases.count(*ref, r.AliasSize)
	} else {
		t.patterns.count(*ref, -r.PatternSize)
		t.aliases.count(*ref, -r.AliasSize)
	}
	for _, id := range r.Backends {
		t.users.set(id, r, current)
		c.backends[id] = struct{}{}
	}
	if r.Fallback == nil {
		return
	}
	// The default backend of an Ingress without rules may affect every host, so all hosts are merged again.
	if current {
		t.fallbacks.Set(*ref, struct{}{})
	} else {
		t.fallbacks.Delete(*ref)
	}
	c.hosts[""] = struct{}{}
	c.hosts.add(t.ofHost.keys())
}

// mergeHost merges the settings of all Ingresses for one host.
func (t *Translator) mergeHost(c *change, host string) {
	old, passed := t.merged.Get(host), t.passedIn(host)
	list := t.contributions(t.ofHost.of(host))
	next := hosts.MergeIsolatingPanics(host, list, t.contributions(t.fallbacks.Keys()), t.around(host))
	t.inputs.note(host, list, next)
	if next.Host != nil && next.Host.Passthrough != nil {
		next.Host.Passthrough.Port = uint16(t.options.Ingress.HTTPSPort)
	}
	if next.Host != nil && next.Host.TLS != nil && reflect.DeepEqual(*next.Host.TLS, t.defaults.global.TLS) {
		// A host without its own TLS policy uses the global policy, so omit a policy that equals the global policy.
		next.Host.TLS, next.Host.TLSOrigin = nil, ""
	}
	if old != nil {
		t.count(c, old.Host, -1)
		t.heads.count(old.MaxHead, -1)
		t.patterns.countAll(old.PatternSizes, -1)
		c.objects.add(maps.Keys(old.Problems))
		next.Host = keep(old.Host, next.Host)
		next.Certificate = keep(old.Certificate, next.Certificate)
	}
	t.names.note(host, old, next)
	t.count(c, next.Host, 1)
	t.heads.count(next.MaxHead, 1)
	t.patterns.countAll(next.PatternSizes, 1)
	c.objects.add(maps.Keys(next.Problems))
	if next.Empty() {
		t.merged.Delete(host)
	} else {
		t.merged.Set(host, next)
	}
	if t.passedIn(host) != passed {
		c.objects.add(t.ofHost.of(host))
	}
}

// The function keep returns old if old and next are equal, and next otherwise.
func keep[T any](old, next *T) *T {
	if old != nil && next != nil && reflect.DeepEqual(old, next) {
		return old
	}
	return next
}

func (t *Translator) contributions(refs iter.Seq[ir.Ref]) []*hosts.Contribution {
	var list []*hosts.Contribution
	for ref := range refs {
		list = append(list, t.contribution(ref))
	}
	return list
}

// count adds n to the number of routes that use each backend of the host h, in t.routes. n must be 1 or -1.
func (t *Translator) count(c *change, h *ir.VirtualHost, n int) {
	if h == nil {
		return
	}
	for _, r := range h.Routes {
		t.countBackends(c, r.Backends, n)
		if r.ErrorPages != nil {
			t.countBackend(c, r.ErrorPages.Backend, n)
		}
	}
	if h.Passthrough != nil {
		t.countBackends(c, h.Passthrough.Backends, n)
	}
}

func (t *Translator) countBackends(c *change, all []ir.WeightedBackend, n int) {
	for i := range all {
		t.countBackend(c, all[i].Backend, n)
	}
}

// countBackend adds n to the number of routes that use a backend. It does nothing if b is nil.
func (t *Translator) countBackend(c *change, b *ir.Backend, n int) {
	if b == nil {
		return
	}
	t.routes.Set(b.ID, t.routes.Get(b.ID)+n)
	c.backends[b.ID] = struct{}{}
	if n > 0 {
		t.found.Set(b.ID, b)
	}
}

// Options are the inputs of a translation, in addition to the Kubernetes objects.
type Options struct {
	Ingress ingress.Options
	Streams streams.Options
	// Listeners are the listeners for the hosts of Ingresses.
	Listeners []ir.Listener
	// ConfigMap is the name of the ConfigMap with the settings for all Ingresses. It may be empty. The settings in the
	// ConfigMap override Ingress.Defaults and Streams.Policy.
	ConfigMap ir.Name
	// DefaultCertificate is the Secret with the certificate for server names without a certificate of their own. It may
	// be empty.
	DefaultCertificate ir.Name
	// DefaultBackend is the backend for requests that no route matches. It may be empty.
	DefaultBackend ir.ServicePort
	// Followed lists the Service ports that Caddy modules use, sorted.
	Followed []ir.FollowedPort
	// Namespaces lists the namespaces whose objects are read. Empty means all namespaces. It is used in messages, and
	// by View, because the API server also asks about Ingresses of other namespaces.
	Namespaces []string
	// Ownership is the policy that decides which namespace owns a host.
	Ownership ownership.Policy
	// HostsPerNamespace is the maximum number of hosts per namespace that get a certificate from an issuer. Zero means
	// no limit.
	HostsPerNamespace int
	// Views keeps the data that the method View of a Translator needs.
	Views bool
	// TrustedProxies means that a server of Caddy trusts proxies (trusted_proxies), in addition to the ConfigMap.
	TrustedProxies bool
}

// sameExceptFollowed reports whether o and other are equal, apart from the field Followed.
func (o Options) sameExceptFollowed(other Options) bool {
	other.Followed = o.Followed
	return reflect.DeepEqual(o, other)
}

// Translate returns the configuration to serve, and a report with the status and the problems of each object. The
// result depends only on s and o.
func Translate(s *snapshot.Snapshot, o Options) (*ir.Config, *report.Report) {
	return New().Translate(s, o)
}

func defaultCertificate(secret ir.Name) *ir.Certificate {
	if secret.IsZero() {
		return nil
	}
	return &ir.Certificate{Secret: secret, Origin: secret.Of(kinds.Secret)}
}
