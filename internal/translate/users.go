package translate

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/ingress"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// users are the Ingresses of every backend, in the order in which they decide about its load balancing: by backend, then
// those whose annotations ask for some before those that have the defaults, then the oldest first. All Ingresses of a
// cluster may have one Service, and a change of one of them must not cost a sort of all.
type users struct{ tree *btree.BTreeG[user] }

// user is one Ingress of one backend. Those of a lower rank come first.
type user struct {
	backend string
	rank    int
	ingress *ingress.Result
}

// The ranks. The first one is that of no Ingress.
const (
	beforeAll = iota
	asksForBalancing
	hasDefaults
)

func newUsers() *users {
	return &users{btree.NewBTreeGOptions(user.before, btree.Options{NoLocks: true})}
}

func (u user) before(other user) bool {
	if c := cmp.Or(cmp.Compare(u.backend, other.backend), cmp.Compare(u.rank, other.rank)); c != 0 || u.rank == beforeAll {
		return c < 0
	}
	return snapshot.Older(u.ingress.Object, other.ingress.Object) < 0
}

// set says whether an Ingress has a backend.
func (u *users) set(backend string, r *ingress.Result, has bool) {
	one := user{backend, hasDefaults, r}
	if r.Balances || r.Canary != nil {
		// A canary may ask for the session cookie of its main Ingress, which is not known here.
		one.rank = asksForBalancing
	}
	if has {
		u.tree.Set(one)
	} else {
		u.tree.Delete(one)
	}
}

// of returns the Ingresses of a backend that ask for a load balancing, and its canaries, the oldest first. Where none asks, the
// oldest other Ingress comes after them: its defaults count.
func (u *users) of(backend string) []*ingress.Result {
	var list []*ingress.Result
	asked := false
	u.tree.Ascend(user{backend: backend}, func(next user) bool {
		if next.backend != backend || next.rank == hasDefaults && asked {
			return false
		}
		list = append(list, next.ingress)
		asked = asked || next.ingress.Balances
		return next.rank == asksForBalancing
	})
	return list
}
