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

// MergeIsolatingPanics calls Merge and isolates Ingresses that make it panic. If Merge panics, MergeIsolatingPanics
// searches, from the oldest Ingress on, for the first one with which it panics. This Ingress gets a problem. Its paths
// return 503 on this host, because they may exist to protect a path of another Ingress. All other Ingresses are served
// as before. An Ingress that makes Merge panic even then is ignored on this host.
//
// The result depends only on the current objects, not on the previous state of the host, so all replicas serve the
// same.
//
// The owner of the host is determined once, from all contributions.
func MergeIsolatingPanics(host string, results []*Contribution, fallbacks []*Contribution,
	around *HostContext) *Merged {
	owner := around.owner(host, results, fallbacks)
	plain := func(host string, results []*Contribution, fallbacks []*Contribution) *Merged {
		return around.merge(host, results, fallbacks, owner)
	}
	return isolatingPanics(plain, host, results, fallbacks)
}

// merge has the signature of Merge without the surroundings of the host.
type merge func(host string, results []*Contribution, fallbacks []*Contribution) *Merged

func isolatingPanics(merge merge, host string, results []*Contribution, fallbacks []*Contribution) *Merged {
	merged, fault := merge.try(host, results, fallbacks)
	if fault == nil {
		return merged
	}
	// The lists belong to the caller.
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

// canariesFirst sorts a canary before the main object, so that the canary is isolated if the two make Merge panic
// together.
func canariesFirst(a, b *Contribution) int {
	return cmp.Or(compareBool(b.Canary != nil, a.Canary != nil), older(a, b))
}

// try calls merge and returns its panic, or nil.
func (m merge) try(host string, results, fallbacks []*Contribution) (merged *Merged, fault *panics.Panic) {
	fault = panics.Try(func() { merged = m(host, results, fallbacks) })
	return merged, fault
}

// quarantine holds the Ingresses of a host that make Merge panic.
type quarantine struct {
	host string
	// faults holds, by contribution, the panic that it causes. stands is the set of the contributions that replace them
	// and return 503.
	faults map[*Contribution]*panics.Panic
	stands map[*Contribution]bool
}

// isolate replaces the first Ingress with which merge panics. The caller has checked that merge panics with the whole
// lists.
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
		// The replacement with its 503 paths makes Merge panic, too.
		*list = slices.Delete(*list, first, first+1)
		return
	}
	q.faults[r] = upTo(first)
	(*list)[first] = r.closedOn(q.host)
	q.stands[(*list)[first]] = true
}

// closedOn returns the replacement for an Ingress that cannot be merged on a host. Its paths return 503. Its settings
// for the host as a whole are kept, because they also protect the paths of other Ingresses.
func (r *Contribution) closedOn(host string) *Contribution {
	stand := &Contribution{
		Object: r.Object, Closed: true, Paths: map[string][]*Path{}, Certificates: r.Certificates, Absent: r.Absent,
		Implied:    r.Implied,
		ClientAuth: r.ClientAuth, TLS: r.TLS, AsksCiphers: r.AsksCiphers, TLSHosts: r.TLSHosts, AllTLS: r.AllTLS,
		PatternsRefused: r.PatternsRefused, Aliases: r.Aliases, WWW: r.WWW,
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

// Closed returns a copy of the path whose requests get 503.
func (p *Path) Closed() *Path {
	return &Path{
		Match: p.Match, Filters: []ir.Filter{ir.Unavailable}, Backend: p.Backend, Regex: p.Regex, Last: p.Last,
		Field: p.Field,
	}
}

// addProblems adds a problem to each Ingress in quarantine.
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
