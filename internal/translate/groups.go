package translate

import (
	"iter"

	"github.com/k8singress/k8singress/internal/ir"
)

// set is a set of names.
type set[K comparable] map[K]struct{}

func (s set[K]) add(keys iter.Seq[K]) {
	for key := range keys {
		s[key] = struct{}{}
	}
}

// groups are sets of Ingresses, each under a key. Nearly all of them have one member, and a map of one entry takes half a
// kilobyte: with ten thousand Ingresses they were the largest thing in memory.
type groups[K comparable] map[K]group

// group has one member, or more.
type group struct {
	one  *ir.Ref
	more set[ir.Ref]
}

// add puts an Ingress into the group of a key. It must not change afterwards.
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

// remove takes an Ingress out of the group of a key. An empty group is none.
func (g groups[K]) remove(key K, ref *ir.Ref) {
	of := g[key]
	delete(of.more, *ref)
	if of.one != nil && *of.one == *ref || of.more != nil && len(of.more) == 0 {
		delete(g, key)
	}
}

// all yields the members, in no particular order.
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
