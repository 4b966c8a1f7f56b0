package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/report"
)

// MergeCarefully is Merge, and makes a panic a verdict on the Ingress that causes it: the first one, from the oldest on,
// with which it comes. The paths of that Ingress answer 503 on this host, because they may be there to keep requests from a
// path of another one; all other Ingresses are served as before. What even then makes Merge panic is left out.
//
// What the host was before is not looked at: what is served depends on the objects only, so that all replicas serve the same.
//
// Who has the host is decided once, by all of them.
func MergeCarefully(host string, results []*Contribution, fallbacks []*Contribution, around *Surroundings) *Merged {
	owner := around.owner(host, results, fallbacks)
	plain := func(host string, results []*Contribution, fallbacks []*Contribution) *Merged {
		return around.merge(host, results, fallbacks, owner)
	}
	return carefully(plain, host, results, fallbacks)
}

// merge is Merge, with what stands around the host.
type merge func(host string, results []*Contribution, fallbacks []*Contribution) *Merged

func carefully(merge merge, host string, results []*Contribution, fallbacks []*Contribution) *Merged {
	merged, fault := merge.try(host, results, fallbacks)
	if fault == nil {
		return merged
	}
	// The lists are the caller's.
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

// canariesFirst lets a canary be found before the main object with which it makes Merge panic.
func canariesFirst(a, b *Contribution) int {
	return cmp.Or(compareBool(b.Canary != nil, a.Canary != nil), older(a, b))
}

// try returns what merge panics with.
func (m merge) try(host string, results, fallbacks []*Contribution) (merged *Merged, fault *panics.Panic) {
	fault = panics.Try(func() { merged = m(host, results, fallbacks) })
	return merged, fault
}

// quarantine are the Ingresses of a host that make Merge panic.
type quarantine struct {
	host string
	// faults is what each of them causes, stands what stands in for one of them.
	faults map[*Contribution]*panics.Panic
	stands map[*Contribution]bool
}

// isolate takes the first Ingress out with which merge panics. All of them together do.
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
		// Its paths are what cannot be merged.
		*list = slices.Delete(*list, first, first+1)
		return
	}
	q.faults[r] = upTo(first)
	(*list)[first] = r.closedOn(q.host)
	q.stands[(*list)[first]] = true
}

// closedOn is what stands in for an Ingress that cannot be merged on a host: its paths, which answer 503. What it says of the
// host as a whole stays, because that holds for the paths of others, too.
func (r *Contribution) closedOn(host string) *Contribution {
	stand := &Contribution{
		Object: r.Object, Closed: true, Paths: map[string][]*Path{}, Certificates: r.Certificates, Absent: r.Absent, Implied: r.Implied,
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

// Closed is the path, answering 503.
func (p *Path) Closed() *Path {
	return &Path{
		Match: p.Match, Filters: []ir.Filter{ir.Unavailable}, Backend: p.Backend, Regex: p.Regex, Last: p.Last, Field: p.Field,
	}
}

// addProblems adds a problem to those of each Ingress in quarantine.
func (q *quarantine) addProblems(merged *Merged) {
	if merged.Problems == nil {
		merged.Problems = map[ir.Ref][]report.Problem{}
	}
	for r, fault := range q.faults {
		merged.Problems[r.Ref()] = append(merged.Problems[r.Ref()], report.Problem{
			Severity: report.Error, Reason: report.Quarantined,
			Message: fmt.Sprintf("the paths for %s get 503, because joining them with those of other Ingresses fails: %v", OrEvery(q.host), fault),
		})
	}
}
