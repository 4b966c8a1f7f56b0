package translate

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// users maps backends to the Ingresses that use them. The order is: by backend, then Ingresses with load balancing
// annotations before Ingresses without them, then the oldest first. It is a tree, so that a change of one Ingress does
// not sort all Ingresses again, even if they all use the same Service.
type users struct{ tree *btree.BTreeG[user] }

// user is an Ingress that uses a backend. Lower ranks come first.
type user struct {
	backend string
	rank    int
	ingress *ingress.Result
}

// The ranks of users. beforeAll is only used as the starting point of a search; no user has this rank.
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

// set adds an Ingress to the users of a backend if has is true. Otherwise it removes the Ingress.
func (u *users) set(backend string, r *ingress.Result, has bool) {
	one := user{backend, hasDefaults, r}
	if r.Balances || r.Canary != nil {
		// The main Ingress of a canary is not known here. It may configure a session cookie, which the canary then
		// uses.
		one.rank = asksForBalancing
	}
	if has {
		u.tree.Set(one)
	} else {
		u.tree.Delete(one)
	}
}

// of returns the canaries of a backend and the Ingresses with load balancing annotations, the oldest first. If no
// Ingress has such annotations, the oldest Ingress without them is added at the end, because its default settings are
// used.
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
