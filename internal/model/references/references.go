// Package references records which parts of the configuration refer to which Secrets. For each of these Secrets it
// keeps a value, such as the parsed contents of the Secret.
package references

import (
	"cmp"
	"slices"
	"sync"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// Key identifies a Secret, or a Secret together with the format of its contents.
type Key[K any] interface {
	comparable
	Compare(other K) int
}

// Reference describes that a part of the configuration refers to a Secret. It is comparable.
type Reference[K Key[K], N comparable] struct {
	Key K
	// Needs says which contents of the Secret are needed.
	Needs N
	// Origin is the object that refers to the Secret, and Field is the field of the object that contains the name of
	// the Secret. If Origin is empty, problems of the Secret are not reported for this reference.
	Origin ir.Ref
	Field  string
	// User says what uses the Secret, such as the name of a host. It is part of error messages.
	User string
}

// Of returns the references to Secrets for each host and listener group that d changes. The keys of the result identify
// these parts of the configuration, such as "host example.com". The callback host returns the references of one host;
// its argument user is the name of the host for messages.
func Of[R any](d *document.Delta, host func(user string, h *document.Host) []R) map[string][]R {
	all := map[string][]R{}
	add := func(part, name string, h *document.Host) {
		if h != nil {
			all[part] = append(all[part], host(cmp.Or(name, "every other host"), h)...)
		}
	}
	for name, h := range d.Hosts {
		part := "host " + name
		all[part] = nil
		add(part, name, h)
	}
	for name, g := range d.ListenerGroups {
		part := "listener group " + name
		all[part] = nil
		if g != nil {
			for name, h := range g.Hosts {
				add(part, name, h)
			}
		}
	}
	return all
}

// Book holds a value, such as the parsed contents, for each Secret that the configuration refers to. Find and Get are
// safe for concurrent use; all other methods must be called from a single goroutine.
type Book[K Key[K], N comparable, V any] struct {
	create func(K) V
	// mu guards entries, because Find may run concurrently with the other methods.
	mu      sync.RWMutex
	entries shrinking.Map[K, *entry[V]]
	// references maps each part of the configuration, such as a host, to its references to Secrets.
	references shrinking.Map[string, []Reference[K, N]]
}

// entry is the value for a Secret, and the parts of the configuration that refer to the Secret.
type entry[V any] struct {
	value V
	parts shrinking.Map[string, struct{}]
}

// NewBook returns a Book without values. create creates the value for a Secret.
func NewBook[K Key[K], N comparable, V any](create func(K) V) *Book[K, N, V] {
	return &Book[K, N, V]{create: create}
}

// Update replaces the references of parts of the configuration. It creates a value for each Secret to which the
// configuration did not refer before, and returns these Secrets. It removes the values of Secrets to which the
// configuration no longer refers.
func (b *Book[K, N, V]) Update(changed map[string][]Reference[K, N]) (added []K) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var removed []K
	for part, refs := range changed {
		for _, old := range b.references.Get(part) {
			b.entries.Get(old.Key).parts.Delete(part)
			removed = append(removed, old.Key)
		}
		if len(refs) > 0 {
			b.references.Set(part, refs)
		} else {
			b.references.Delete(part)
		}
		for _, ref := range refs {
			e := b.entries.Get(ref.Key)
			if e == nil {
				e = &entry[V]{value: b.create(ref.Key)}
				b.entries.Set(ref.Key, e)
				added = append(added, ref.Key)
			}
			e.parts.Set(part, struct{}{})
		}
	}
	for _, key := range removed {
		if e := b.entries.Get(key); e != nil && e.parts.Len() == 0 {
			b.entries.Delete(key)
		}
	}
	slices.SortFunc(added, K.Compare)
	return added
}

// Find returns the value for a Secret. It returns false if the configuration does not refer to the Secret.
func (b *Book[K, N, V]) Find(key K) (value V, found bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if e := b.entries.Get(key); e != nil {
		return e.value, true
	}
	return value, false
}

// Get returns the value for a Secret. If the configuration does not refer to the Secret, it returns a new value that is
// not part of the Book.
func (b *Book[K, N, V]) Get(key K) V {
	if value, found := b.Find(key); found {
		return value
	}
	return b.create(key)
}

// Contains reports whether match returns true for the value of at least one Secret.
func (b *Book[K, N, V]) Contains(match func(V) bool) bool {
	for e := range b.entries.Values() {
		if match(e.value) {
			return true
		}
	}
	return false
}

// Problems returns the problems of Secrets, to be shown to users. The result has one Verdict (the report on one object)
// for each field that refers to a Secret with a problem. The callback check returns the problems to report for one such
// field. Its argument ref is a reference from this field. Its argument users lists what uses the Secret, such as host
// names.
func (b *Book[K, N, V]) Problems(
	check func(value V, ref *Reference[K, N], users string) []report.Problem) (all []*report.Verdict) {
	for _, key := range slices.SortedFunc(b.entries.Keys(), K.Compare) {
		refs := b.referencesTo(key)
		for len(refs) > 0 {
			first := &refs[0]
			var users []string
			for len(refs) > 0 && refs[0].Origin == first.Origin && refs[0].Field == first.Field {
				users, refs = append(users, refs[0].User), refs[1:]
			}
			users = slices.Compact(users)
			found := check(b.entries.Get(key).value, first, report.List(users, len(users), report.MaxListed))
			if len(found) > 0 {
				all = append(all, &report.Verdict{Object: first.Origin, Problems: found})
			}
		}
	}
	return all
}

// referencesTo returns the references to a Secret that come from an object (Origin is not empty). They are sorted by
// object, field and user.
func (b *Book[K, N, V]) referencesTo(key K) (refs []Reference[K, N]) {
	for part := range b.entries.Get(key).parts.Keys() {
		for _, ref := range b.references.Get(part) {
			if ref.Key == key && ref.Origin != (ir.Ref{}) {
				refs = append(refs, ref)
			}
		}
	}
	slices.SortFunc(refs, func(x, y Reference[K, N]) int {
		return cmp.Or(cmp.Compare(x.Origin.String(), y.Origin.String()), cmp.Compare(x.Field, y.Field),
			cmp.Compare(x.User, y.User))
	})
	return refs
}
