package translate

import (
	"iter"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// set is a set of keys.
type set[K comparable] map[K]struct{}

func (s set[K]) add(keys iter.Seq[K]) {
	for key := range keys {
		s[key] = struct{}{}
	}
}

// groups maps keys to sets of Ingresses. Most sets contain only one Ingress, and a Go map with one entry needs 512
// bytes. With ten thousand Ingresses, such maps would need more memory than all other data. So a set with only one
// Ingress is not stored as a map.
type groups[K comparable] struct{ byKey shrinking.Map[K, group] }

// group is a set of Ingresses. If the set has one member, it is stored in the field one. Otherwise the field one is
// nil, and the members are stored in the field more.
type group struct {
	one  *ir.Ref
	more *shrinking.Map[ir.Ref, struct{}]
}

// add adds an Ingress to the set of a key. The caller must not change *ref afterwards.
func (g *groups[K]) add(key K, ref *ir.Ref) {
	of := g.byKey.Get(key)
	switch {
	case of.more != nil:
		of.more.Set(*ref, struct{}{})
	case of.one == nil:
		g.byKey.Set(key, group{one: ref})
	case *of.one != *ref:
		more := &shrinking.Map[ir.Ref, struct{}]{}
		more.Set(*of.one, struct{}{})
		more.Set(*ref, struct{}{})
		g.byKey.Set(key, group{more: more})
	}
}

// remove removes an Ingress from the set of a key. It deletes the key if the set becomes empty.
func (g *groups[K]) remove(key K, ref *ir.Ref) {
	of := g.byKey.Get(key)
	switch {
	case of.more != nil:
		if of.more.Delete(*ref); of.more.Len() == 0 {
			g.byKey.Delete(key)
		}
	case of.one != nil && *of.one == *ref:
		g.byKey.Delete(key)
	}
}

// has reports whether the set of a key has members.
func (g *groups[K]) has(key K) bool { return g.byKey.Has(key) }

// keys yields the keys whose sets have members.
func (g *groups[K]) keys() iter.Seq[K] { return g.byKey.Keys() }

// The method of yields the members of the set of a key, in no particular order.
func (g *groups[K]) of(key K) iter.Seq[ir.Ref] { return g.byKey.Get(key).all() }

// The method all yields the members in no particular order.
func (g group) all() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		if g.one != nil {
			yield(*g.one)
			return
		}
		g.more.Keys()(yield)
	}
}
