package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// MergeIsolatingPanics works like Merge, but isolates Ingresses that make Merge panic. If Merge panics, it sorts the
// Ingresses, canaries first, then by age, and searches for the shortest prefix of this list for which Merge panics. The
// last Ingress of the prefix gets a problem, and its paths return 503 on this host, because they may protect a path of
// another Ingress. This is repeated while Merge panics. An Ingress that is found a second time is ignored on this host.
// All other Ingresses are served normally.
//
// The result depends only on the current objects, not on the previous state of the host, so all replicas serve the same
// configuration.
//
// The owner of the host is determined once, with all objects, before any of them is isolated.
func MergeIsolatingPanics(host string, results []*Contribution, fallbacks []*Contribution,
	around *HostContext) *Merged {
	owner := around.owner(host, results, fallbacks)
	plain := func(host string, results []*Contribution, fallbacks []*Contribution) *Merged {
		return around.merge(host, results, fallbacks, owner)
	}
	return isolatingPanics(plain, host, results, fallbacks)
}

// merge is a function like Merge, but without the parameter around.
type merge func(host string, results []*Contribution, fallbacks []*Contribution) *Merged

func isolatingPanics(merge merge, host string, results []*Contribution, fallbacks []*Contribution) *Merged {
	merged, fault := merge.try(host, results, fallbacks)
	if fault == nil {
		return merged
	}
	// Clone the lists, because they belong to the caller.
	results, fallbacks = slices.Clone(results), slices.Clone(fallbacks)
	slices.SortFunc(results, canariesFirst)
	slices.SortFunc(fallbacks, canariesFirst)
	q := &quarantine{host: host, faults: map[*Contribution]*panics.Panic{}, stands: map[*Contribution]bool{}}
	for fault != nil && len(results)+len(fallbacks) > 0 {
		q.isolate(merge, &results, &fallbacks)
		merged, fault = merge.try(host, results, fallbacks)
	}
	if fault != nil {
		merged = &Merged{}
	}
	q.addProblems(merged)
	return merged
}

// canariesFirst compares two objects for sorting: canaries come before main objects, and older objects before younger
// ones.
func canariesFirst(a, b *Contribution) int {
	return cmp.Or(compareBool(b.Canary != nil, a.Canary != nil), older(a, b))
}

// The method try calls m. If m panics, try returns the panic as fault. Otherwise fault is nil.
func (m merge) try(host string, results, fallbacks []*Contribution) (merged *Merged, fault *panics.Panic) {
	fault = panics.Try(func() { merged = m(host, results, fallbacks) })
	return merged, fault
}

// quarantine records the objects that made Merge panic on a host, and the objects that replace them.
type quarantine struct {
	host string
	// faults maps each object that was replaced to the panic that it caused. stands is the set of replacements, whose
	// paths return 503.
	faults map[*Contribution]*panics.Panic
	stands map[*Contribution]bool
}

// isolate finds the object that makes merge panic, and replaces it with an object whose paths return 503. It is the
// last object of the shortest prefix of results for which merge panics. If merge does not panic for results alone,
// isolate searches fallbacks in the same way. If the object that it finds is already such a replacement, isolate
// removes it. The caller must have checked that merge panics for the complete lists.
func (q *quarantine) isolate(merge merge, results, fallbacks *[]*Contribution) {
	list := results
	upTo := func(i int) *panics.Panic {
		_, fault := merge.try(q.host, (*results)[:i+1], nil)
		return fault
	}
	if _, fault := merge.try(q.host, *results, nil); fault == nil || len(*results) == 0 {
		list = fallbacks
		upTo = func(i int) *panics.Panic {
			_, fault := merge.try(q.host, *results, (*fallbacks)[:i+1])
			return fault
		}
	}
	first := sort.Search(len(*list)-1, func(i int) bool { return upTo(i) != nil })
	r := (*list)[first]
	if q.stands[r] {
		// Merge panics even with the replacement, whose paths return 503, so remove the replacement.
		*list = slices.Delete(*list, first, first+1)
		return
	}
	q.faults[r] = upTo(first)
	(*list)[first] = r.closedOn(q.host)
	q.stands[(*list)[first]] = true
}

// closedOn returns a replacement for an object that cannot be merged on a host. Its paths return 503. Settings for the
// host as a whole, such as client certificates, are kept, because they also protect the paths of other objects.
func (r *Contribution) closedOn(host string) *Contribution {
	stand := &Contribution{
		Object: r.Object, Closed: true, Paths: map[string][]*Path{}, Certificates: r.Certificates, Absent: r.Absent,
		Implied:    r.Implied,
		ClientAuth: r.ClientAuth, TLS: r.TLS, AsksCiphers: r.AsksCiphers, TLSHosts: r.TLSHosts, AllTLS: r.AllTLS,
		PatternsRefused: r.PatternsRefused, Aliases: r.Aliases, WWW: r.WWW,
		DefaultChains: r.DefaultChains,
		Server:        r.Server.closed(),
	}
	if r.Canary != nil {
		stand.Canary = &ir.Canary{Closed: true}
	}
	if paths, ok := r.Paths[host]; ok {
		stand.Paths[host] = nil
		for _, p := range paths {
			if p != nil && p.Backend != nil {
				stand.Paths[host] = append(stand.Paths[host], p.Closed())
			}
		}
	}
	if r.Fallback != nil && r.Fallback.Backend != nil {
		stand.Fallback = r.Fallback.Closed()
	}
	return stand
}

// Closed returns a copy of the path that returns 503 for all requests. It keeps the RoutePolicy, which also applies to
// error responses.
func (p *Path) Closed() *Path {
	return &Path{
		Match: p.Match, Filters: []ir.Filter{ir.Unavailable}, Early: 1, Backend: p.Backend, Regex: p.Regex,
		Last: p.Last, Everywhere: p.Everywhere, Field: p.Field, RoutePolicy: p.RoutePolicy,
	}
}

// addProblems adds a problem to each isolated object.
func (q *quarantine) addProblems(merged *Merged) {
	if merged.Problems == nil {
		merged.Problems = map[ir.Ref][]report.Problem{}
	}
	for r, fault := range q.faults {
		merged.Problems[r.Ref()] = append(merged.Problems[r.Ref()], report.Problem{
			Severity: report.Error, Reason: report.Quarantined,
			Message: fmt.Sprintf(
				"requests for the paths of %s get 503, because merging them with other Ingresses failed: %v",
				OrEvery(q.host), fault),
		})
	}
}
