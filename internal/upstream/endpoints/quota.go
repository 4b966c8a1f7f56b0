package endpoints

import (
	"iter"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// MaxPerNamespace is the maximum total number of endpoints of all backends in a namespace. Even large namespaces have
// far fewer pods. A limit is needed because an EndpointSlice of 40 KB can define 100,000 endpoints with its ports, and
// with consistent hashing each endpoint uses more than 1 KB of memory.
const MaxPerNamespace = 50_000

// quota counts the endpoints in a namespace. The keys of the maps are backend IDs. One map (has) counts the endpoints
// that are used. The other map (left) counts the endpoints that are not used because of the limit.
type quota struct {
	total     int
	has, left shrinking.Map[string, int]
}

// admit returns the first endpoints of list, as many as the quota of the backend's namespace still allows. It counts
// them towards the quota. The caller must hold t.setting.
func (t *Table) admit(id string, list []ir.Endpoint) []ir.Endpoint {
	t.withdraw(id)
	if len(list) == 0 {
		return list
	}
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas.Get(namespace)
	if q == nil {
		q = &quota{}
		t.quotas.Set(namespace, q)
	}
	n := min(len(list), MaxPerNamespace-q.total)
	q.total += n
	if q.has.Set(id, n); n < len(list) {
		q.left.Set(id, len(list)-n)
	}
	return list[:n]
}

// withdraw stops counting the endpoints of a backend towards the quota of its namespace. The caller must hold
// t.setting.
func (t *Table) withdraw(id string) {
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas.Get(namespace)
	if q == nil {
		return
	}
	q.total -= q.has.Get(id)
	q.has.Delete(id)
	q.left.Delete(id)
	if q.has.Len() == 0 {
		t.quotas.Delete(namespace)
	}
}

// LeftOut returns the number of endpoints of a backend that are not used because of the quota of its namespace.
func (t *Table) LeftOut(id string) int {
	t.setting.Lock()
	defer t.setting.Unlock()
	namespace, _, _ := strings.Cut(id, "/")
	if q := t.quotas.Get(namespace); q != nil {
		return q.left.Get(id)
	}
	return 0
}

// Short yields the IDs of the backends that could use more endpoints now: some of their endpoints were left out because
// of the quota of the namespace, but the quota is no longer used up. The caller must call Set again for each of them.
func (t *Table) Short() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, id := range t.short() {
			if t.hasRoom(id) && !yield(id) {
				return
			}
		}
	}
}

func (t *Table) short() (all []string) {
	t.setting.Lock()
	defer t.setting.Unlock()
	for _, q := range t.quotas.All() {
		if q.total < MaxPerNamespace {
			all = slices.AppendSeq(all, q.left.Keys())
		}
	}
	slices.Sort(all)
	return all
}

func (t *Table) hasRoom(id string) bool {
	t.setting.Lock()
	defer t.setting.Unlock()
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas.Get(namespace)
	return q != nil && q.total < MaxPerNamespace
}
