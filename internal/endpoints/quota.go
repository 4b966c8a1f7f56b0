package endpoints

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// MostOfNamespace is how many endpoints the backends of a namespace may have together, which is many times the pods of large ones. An
// EndpointSlice of 40 KB stands for 100,000, by its ports, and with consistent hashing each of them takes more than 1 KB.
const MostOfNamespace = 50_000

// quota is what the backends of a namespace have of MostOfNamespace, by ID, and how many endpoints of each are left out.
type quota struct {
	total     int
	has, left map[string]int
}

// admit returns the endpoints of a list that there is room for in the namespace of a backend. The mutex of setting is held.
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
	n := min(len(list), MostOfNamespace-q.total)
	q.total += n
	if q.has[id] = n; n < len(list) {
		q.left[id] = len(list) - n
	}
	return list[:n]
}

// withdraw makes room. The mutex of setting is held.
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

// LeftOut is how many endpoints of a backend there is no room for in its namespace.
func (t *Table) LeftOut(id string) int {
	t.setting.Lock()
	defer t.setting.Unlock()
	namespace, _, _ := strings.Cut(id, "/")
	if q := t.quotas[namespace]; q != nil {
		return q.left[id]
	}
	return 0
}

// Short yields the backends of which endpoints are left out while there is room for some. They are to be set again.
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
		if q.total < MostOfNamespace {
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
	return q != nil && q.total < MostOfNamespace
}
