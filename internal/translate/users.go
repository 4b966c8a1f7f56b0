package translate

import (
	"cmp"

	"github.com/tidwall/btree"

	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// users is a sorted list of the Ingresses that use each backend. It is sorted by backend. For each backend, Ingresses
// with load balancing annotations come first, and older Ingresses come before younger ones. It is stored as a tree,
// because sorting all Ingresses again after each change would be slow if they all use the same Service.
type users struct{ tree *btree.BTreeG[user] }

// user is an Ingress that uses a backend. A user with a lower rank takes precedence.
type user struct {
	backend string
	rank    int
	ingress *ingress.Result
}

// The ranks of Ingresses that use the same backend; the lowest rank takes precedence. beforeAll is only used as the
// starting point of a search; no Ingress has this rank.
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

// The method set adds an Ingress to the users of a backend if has is true. Otherwise it removes the Ingress.
func (u *users) set(backend string, r *ingress.Result, has bool) {
	one := user{backend, hasDefaults, r}
	if r.Balances || r.Canary != nil {
		// Treat a canary like an Ingress with load balancing annotations: its main Ingress, which is not known here,
		// may configure a session cookie that the canary uses.
		one.rank = asksForBalancing
	}
	if has {
		u.tree.Set(one)
	} else {
		u.tree.Delete(one)
	}
}

// The method copy returns a copy for concurrent readers, in constant time.
func (u *users) copy() *users { return &users{u.tree.Copy()} }

// askingForBalancing returns the canaries of a backend and the Ingresses with load balancing annotations, the oldest
// first.
func (u *users) askingForBalancing(backend string) (list []*ingress.Result) {
	u.tree.Ascend(user{backend: backend}, func(next user) bool {
		if next.backend != backend || next.rank != asksForBalancing {
			return false
		}
		list = append(list, next.ingress)
		return true
	})
	return list
}

// users.of returns the canaries of a backend and the Ingresses with load balancing annotations, the oldest first. If no
// Ingress has such annotations, the oldest Ingress without them is appended, because its default settings are used.
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
