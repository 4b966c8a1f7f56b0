package translate

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/hosts"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// publish builds the new configuration and the new report. Unchanged parts are copied from the previous configuration
// and report.
func (t *Translator) publish(c *change) {
	backends := t.backends(c)
	virtual, certificates := map[string]*ir.VirtualHost{}, map[string]*ir.Certificate{}
	for host := range c.hosts {
		virtual[host], certificates[host] = nil, t.issuance.certificate(host, t.merged.Get(host))
		if m := t.merged.Get(host); m != nil {
			virtual[host] = m.Host
		}
		if given := t.names.resolved(host); given != nil && virtual[host] == nil {
			virtual[host] = given.Host
		}
		if given := t.names.of(host); given != nil && certificates[host] == nil {
			certificates[host] = given.Certificate
		}
	}
	ports, problems, refused := t.portCertificates(t.streams.Routes)
	ports.addTo(t, certificates, t.issued)
	for _, told := range []map[ir.Ref][]report.Problem{t.portProblems, problems} {
		c.objects.add(maps.Keys(told))
	}
	t.issued, t.portProblems = ports, problems
	config := &ir.Config{
		ListenerGroup: ir.ListenerGroup{
			Listeners: t.options.Listeners,
			VirtualHosts: patched(t.config.VirtualHosts, virtual, func(h *ir.VirtualHost) string { return h.Host },
				cmp.Compare[string]),
		},
		MoreGroups: t.listening,
		Certificates: patched(t.config.Certificates, certificates,
			func(c *ir.Certificate) string { return c.Host }, cmp.Compare[string]),
		Backends: patched(t.config.Backends, backends, func(b *ir.Backend) string { return b.ID },
			cmp.Compare[string]),
		Followed:           t.defaults.followed,
		StreamRoutes:       without(t.streams.Routes, refused),
		Global:             keep(t.config.Global, t.heads.in(t.defaults.global)),
		DefaultCertificate: keep(t.config.DefaultCertificate, defaultCertificate(t.options.DefaultCertificate)),
	}
	verdicts := map[ir.Ref]*report.Verdict{}
	for ref := range c.objects {
		verdicts[ref] = t.verdict(ref)
	}
	t.config = config
	t.report = &report.Report{Verdicts: patched(t.report.Verdicts, verdicts,
		func(v *report.Verdict) ir.Ref { return v.Object }, report.Compare)}
}

// verdict returns the reported status of an object, with the problems from all steps of the translation. It returns nil
// if the object does not belong to this controller.
func (t *Translator) verdict(ref ir.Ref) *report.Verdict {
	if ref.Kind != kinds.Ingress {
		return t.withPortProblems(ref, t.settingsVerdict(ref))
	}
	r := t.results.Get(ref)
	if r == nil || !r.Ours && len(r.Problems) == 0 {
		return nil
	}
	v := &report.Verdict{Object: ref, Problems: append(slices.Clone(r.Problems), certificateProblems(r, t.passedIn)...)}
	if r.Ours {
		v.Parents = t.parents(r.Class)
	}
	if p := voidWithPassthrough(r, t.passedIn); p != nil {
		v.Problems = append(v.Problems, *p)
	}
	v.Problems = append(v.Problems, nameProblems(r, ref, t.mergedHost,
		func(name string) *hosts.Named { return t.names.resolved(name) })...)
	if p := t.patternProblem(ref); p != nil {
		v.Problems = append(v.Problems, *p)
	}
	names := hostsOf(r)
	for _, host := range names {
		if m := t.merged.Get(host); m != nil {
			v.Problems = append(v.Problems, m.Problems[ref]...)
		}
	}
	v.Problems = append(v.Problems, t.issuance.problems(names, ref, t.options.HostsPerNamespace)...)
	for _, id := range r.Backends {
		if b := t.balanced.Get(id); b != nil {
			v.Problems = append(v.Problems, b.problems[ref]...)
		}
	}
	return v
}

// hostsOf returns the hosts that an Ingress configures, sorted. The host "" stands for every host without a rule.
func hostsOf(r *ingress.Result) []string {
	all := set[string]{}
	all.add(maps.Keys(r.Paths))
	all.add(maps.Keys(r.Certificates))
	if r.Fallback != nil {
		all[""] = struct{}{}
	}
	return slices.Sorted(maps.Keys(all))
}

// parents returns the parents in the reported status of all Ingresses of a class: a list that contains only the
// IngressClass. All Ingresses of the class share the same list to save memory.
func (t *Translator) parents(class string) []report.Parent {
	list := t.classes.Get(class)
	if list == nil {
		parent := ir.Ref{Kind: kinds.IngressClass, Name: cmp.Or(class, t.options.Ingress.ClassName)}
		list = []report.Parent{{ParentRef: report.ParentRef{Object: parent}}}
		t.classes.Set(class, list)
	}
	return list
}

// settingsVerdict returns the verdict for a ConfigMap, an IngressClass or a Service, or nil if there is no verdict. If
// a ConfigMap contains both settings and port definitions, it combines the verdicts for both.
func (t *Translator) settingsVerdict(ref ir.Ref) *report.Verdict {
	of, ports := t.defaults.verdicts[ref], t.streams.verdicts[ref]
	if ports == nil {
		return of
	}
	return of.With(ports)
}

// patched returns a copy of a sorted list after applying changes. changes maps the key of an element to its new value;
// nil removes the element. If the new value equals the old one, the element keeps its pointer. If nothing differs,
// patched returns list itself.
func patched[T any, K comparable](list []*T, changes map[K]*T, key func(*T) K, compare func(a, b K) int) []*T {
	type edit struct {
		from, to int
		value    *T
	}
	var edits []edit
	for _, name := range slices.SortedFunc(maps.Keys(changes), compare) {
		var old *T
		from, found := slices.BinarySearchFunc(list, name, func(v *T, k K) int { return compare(key(v), k) })
		to := from
		if found {
			old, to = list[from], from+1
		}
		if value := changes[name]; old != value && !reflect.DeepEqual(old, value) {
			edits = append(edits, edit{from, to, value})
		}
	}
	if len(edits) == 0 {
		return list
	}
	// The list may be much shorter than before, so allocate no more memory than it needs.
	size := len(list)
	for _, e := range edits {
		if size -= e.to - e.from; e.value != nil {
			size++
		}
	}
	result, done := make([]*T, 0, size), 0
	for _, e := range edits {
		result = append(result, list[done:e.from]...)
		if done = e.to; e.value != nil {
			result = append(result, e.value)
		}
	}
	if result = append(result, list[done:]...); len(result) > 0 {
		return result
	}
	return nil
}

// passedIn returns the namespace whose Ingress passes the TLS connections of a host through to a backend. It returns ""
// if the controller terminates TLS.
func (t *Translator) passedIn(host string) string {
	if m := t.merged.Get(host); m != nil {
		return m.PassedIn
	}
	return ""
}

// certificateProblems returns the problems with certificates of an Ingress. A problem is omitted or replaced if the TLS
// connections of all affected hosts are passed through, because clients then get the certificate of the backend.
// passedIn is a function like Translator.passedIn.
func certificateProblems(r *ingress.Result, passedIn func(host string) string) []report.Problem {
	var all []report.Problem
	for i := range r.CertificateProblems {
		p := &r.CertificateProblems[i]
		shown := len(p.Hosts) == 0 || slices.ContainsFunc(p.Hosts,
			func(host string) bool { return passedIn(host) == "" })
		switch {
		case shown:
			all = append(all, p.Problem)
		case p.Passed != "":
			all = append(all, report.Problem{Severity: report.Info, Reason: p.Reason, Field: p.Field,
				Message: p.Passed})
		}
	}
	return all
}

// voidWithPassthrough returns a warning about annotations that have no effect on passed-through connections, or nil if
// there are no such annotations. The warning lists only the hosts whose connections are passed through: on other hosts,
// the annotations may restrict access and must not be removed. passedIn is a function like Translator.passedIn.
func voidWithPassthrough(r *ingress.Result, passedIn func(host string) string) *report.Problem {
	if !r.PassesThrough {
		return nil
	}
	var passed []string
	for _, host := range slices.Sorted(maps.Keys(r.Paths)) {
		if passedIn(host) == r.Object.Namespace {
			passed = append(passed, host)
		}
	}
	return r.VoidFor(passed, len(passed) == len(r.Paths))
}
