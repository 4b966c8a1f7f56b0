package translate

import (
	"iter"

	"github.com/k8singress/k8singress/internal/model/ir"
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
type groups[K comparable] map[K]group

// group is a set of Ingresses. If the set has one member, it is stored in the field one. Otherwise the field one is
// nil, and the members are stored in the field more.
type group struct {
	one  *ir.Ref
	more set[ir.Ref]
}

// add adds an Ingress to the set of a key. The caller must not change *ref afterwards.
func (g groups[K]) add(key K, ref *ir.Ref) {
	of := g[key]
	switch {
	case of.more != nil:
		of.more[*ref] = struct{}{}
	case of.one == nil:
		g[key] = group{one: ref}
	case *of.one != *ref:
		g[key] = group{more: set[ir.Ref]{*of.one: {}, *ref: {}}}
	}
}

// remove removes an Ingress from the set of a key. It deletes the key if the set becomes empty.
func (g groups[K]) remove(key K, ref *ir.Ref) {
	of := g[key]
	delete(of.more, *ref)
	if of.one != nil && *of.one == *ref || of.more != nil && len(of.more) == 0 {
		delete(g, key)
	}
}

// The method all yields the members in no particular order.
func (g group) all() iter.Seq[ir.Ref] {
	return func(yield func(ir.Ref) bool) {
		if g.one != nil {
			yield(*g.one)
			return
		}
		for ref := range g.more {
			if !yield(ref) {
				return
			}
		}
	}
}
