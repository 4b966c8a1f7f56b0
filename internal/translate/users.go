package translate

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// users holds the Ingresses of all backends, in the order in which they decide about load balancing: by backend, then
// Ingresses with load balancing annotations before Ingresses without, then the oldest first. All Ingresses of a cluster
// may use the same Service, so a change of one of them must not sort all of them.
type users struct{ tree *btree.BTreeG[user] }

// user is one Ingress of one backend. Lower ranks come first.
type user struct {
	backend string
	rank    int
	ingress *ingress.Result
}

// The ranks. beforeAll is only the starting point of a search; no Ingress has this rank.
const (
	beforeAll = iota
	asksForBalancing
	hasDefaults
)

func newUsers() *users {
	return &users{btree.NewBTreeGOptions(user.before, btree.Options{NoLocks: true})}
}

func (u user) before(other user) bool {
	if c := cmp.Or(cmp.Compare(u.backend, other.backend), cmp.Compare(u.rank, other.rank)); c != 0 ||
		u.rank == beforeAll {
		return c < 0
	}
	return snapshot.Older(u.ingress.Object, other.ingress.Object) < 0
}

// set adds an Ingress to a backend if has is true, and removes it otherwise.
func (u *users) set(backend string, r *ingress.Result, has bool) {
	one := user{backend, hasDefaults, r}
	if r.Balances || r.Canary != nil {
		// A canary may use the session cookie of its main Ingress, which is not known here.
		one.rank = asksForBalancing
	}
	if has {
		u.tree.Set(one)
	} else {
		u.tree.Delete(one)
	}
}

// of returns the Ingresses of a backend with load balancing annotations, and its canaries, the oldest first. If no
// Ingress has such annotations, the oldest other Ingress is added at the end, because its defaults are used.
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
