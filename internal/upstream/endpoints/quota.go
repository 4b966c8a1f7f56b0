package endpoints

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// MaxPerNamespace is the maximum number of endpoints of all backends of a namespace together. This is many times the
// number of pods in large namespaces. An EndpointSlice of 40 KB can define 100,000 endpoints through its ports, and
// with consistent hashing each of them uses more than 1 KB.
const MaxPerNamespace = 50_000

// quota counts the endpoints of the backends of a namespace. has and left are, by backend ID, the numbers of endpoints
// in use and left out.
type quota struct {
	total     int
	has, left map[string]int
}

// admit returns the endpoints of a list that fit into the quota of the backend's namespace. The caller holds setting.
func (t *Table) admit(id string, list []ir.Endpoint) []ir.Endpoint {
	t.withdraw(id)
	if len(list) == 0 {
		return list
	}
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas[namespace]
	if q == nil {
		q = &quota{has: map[string]int{}, left: map[string]int{}}
		t.quotas[namespace] = q
	}
	n := min(len(list), MaxPerNamespace-q.total)
	q.total += n
	if q.has[id] = n; n < len(list) {
		q.left[id] = len(list) - n
	}
	return list[:n]
}

// withdraw removes the endpoints of a backend from the quota. The caller holds setting.
func (t *Table) withdraw(id string) {
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas[namespace]
	if q == nil {
		return
	}
	q.total -= q.has[id]
	delete(q.has, id)
	delete(q.left, id)
	if len(q.has) == 0 {
		delete(t.quotas, namespace)
	}
}

// LeftOut returns the number of endpoints of a backend that are left out because the quota of its namespace is used up.
func (t *Table) LeftOut(id string) int {
	t.setting.Lock()
	defer t.setting.Unlock()
	namespace, _, _ := strings.Cut(id, "/")
	if q := t.quotas[namespace]; q != nil {
		return q.left[id]
	}
	return 0
}

// Short yields the backends with endpoints that are left out although the quota has room again. The caller must set
// their endpoints again.
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
	for _, q := range t.quotas {
		if q.total < MaxPerNamespace {
			all = slices.AppendSeq(all, maps.Keys(q.left))
		}
	}
	slices.Sort(all)
	return all
}

func (t *Table) hasRoom(id string) bool {
	t.setting.Lock()
	defer t.setting.Unlock()
	namespace, _, _ := strings.Cut(id, "/")
	q := t.quotas[namespace]
	return q != nil && q.total < MaxPerNamespace
}
