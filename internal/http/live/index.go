package live

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// index finds the virtual host of a request. It is immutable: a change creates a new index, which shares the unchanged
// parts with the old index, so that the cost of a change does not depend on the number of hosts.
type index struct {
	exact hosts
	// wildcard maps ".example.com" to the host "*.example.com". The keys have no asterisk, so that a lookup can use a
	// substring of the requested name and does not allocate memory.
	wildcard hosts
	// deep maps ".example.com" to the host "**.example.com", which matches names with any number of labels before the
	// suffix. There are only a few such hosts.
	deep map[string]*host
	// expressions are the hosts whose names are regular expressions, sorted by age, the oldest one first. There are
	// only a few such hosts.
	expressions []*host
	fallback    *host
	// withClientAuth is the number of hosts with a policy for client certificates.
	withClientAuth int
	// withPassthrough is the number of hosts with TLS passthrough.
	withPassthrough int
	// variables are the variables that the filters of the hosts use. A request gets them with its route, so that it
	// never runs filters with the variables of another configuration.
	variables *variables.Set
}

// hosts maps names to virtual hosts. The map is split into shards, so that a change copies only the shards that it
// modifies.
type hosts [256]map[string]*host

var seed = maphash.MakeSeed()

func shard(name string) int { return int(maphash.String(seed, name) & 0xff) }

func (h *hosts) get(name string) *host { return h[shard(name)][name] }

// changedShards marks the shards that one change has copied, and those from which it has removed names.
type changedShards struct{ copied, smaller [len(hosts{})]bool }

// set sets the host for a name, or removes the name if value is nil. Shards may be shared with other indexes, so set
// copies a shard before it modifies the shard for the first time. The caller must call trim after the last call of set.
func (h *hosts) set(name string, value *host, changed *changedShards) {
	i := shard(name)
	if !changed.copied[i] {
		changed.copied[i] = true
		if h[i] = maps.Clone(h[i]); h[i] == nil {
			h[i] = map[string]*host{}
		}
	}
	if value == nil {
		changed.smaller[i] = true
		delete(h[i], name)
	} else {
		h[i][name] = value
	}
}

// trim releases the memory of the names that a change has removed.
func (h *hosts) trim(changed *changedShards) {
	for i, smaller := range changed.smaller {
		if smaller {
			h[i] = shrinking.Copy(h[i])
		}
	}
}

// x.with(changed, defined) returns a copy of the index in which the hosts in changed replace the hosts with the same
// names. A nil value in changed removes the host. defined are the variables of the copy.
func (x *index) with(changed map[string]*host, defined *variables.Set) *index {
	next := *x
	next.variables = defined
	var exact, wildcard changedShards
	for name, h := range changed {
		before := x.get(name)
		next.withClientAuth += h.clientAuthCount() - before.clientAuthCount()
		next.withPassthrough += h.passthroughCount() - before.passthroughCount()
		switch {
		case name == "":
			next.fallback = h
		case strings.HasPrefix(name, "*."):
			next.wildcard.set(name[1:], h, &wildcard)
		case strings.HasPrefix(name, "**."):
			next.deep = withDeep(next.deep, name[2:], h)
		case strings.HasPrefix(name, "~"):
			next.expressions = withExpression(next.expressions, name, h)
		default:
			next.exact.set(name, h, &exact)
		}
	}
	next.exact.trim(&exact)
	next.wildcard.trim(&wildcard)
	return &next
}

// withDeep returns a copy of all in which h replaces the host with this suffix. If h is nil, the host is removed.
func withDeep(all map[string]*host, suffix string, h *host) map[string]*host {
	next := shrinking.Copy(all)
	switch {
	case h == nil:
		delete(next, suffix)
	case next == nil:
		next = map[string]*host{suffix: h}
	default:
		next[suffix] = h
	}
	return next
}

// withExpression returns a copy of list in which h replaces the host with this name. If h is nil, the host is removed.
// The name is a regular expression.
func withExpression(list []*host, name string, h *host) []*host {
	list = slices.DeleteFunc(slices.Clone(list), func(h *host) bool { return h.name == name })
	if h != nil {
		i, _ := slices.BinarySearchFunc(list, h, olderName)
		list = slices.Insert(list, i, h)
	}
	return list
}

// olderName compares two hosts whose names are regular expressions, for sorting. The host whose alias was defined first
// comes first. If two aliases have the same age, the object that comes last in alphabetical order (by kind, namespace
// and name) comes first.
func olderName(a, b *host) int {
	return cmp.Or(cmp.Compare(a.aliasSince, b.aliasSince), cmp.Compare(b.aliasBy, a.aliasBy),
		cmp.Compare(a.name, b.name))
}

// find returns the virtual host that serves requests for name, or nil. name must be in lower case. If name is an alias,
// find returns the host to which the alias refers.
func (x *index) find(name string) *host {
	h := x.lookup(name)
	if h == nil || h.aliasOf == "" {
		return h
	}
	if h = x.get(h.aliasOf); h == nil || h.aliasOf != "" {
		return nil
	}
	return h
}

// lookup returns the host for a name: the host with exactly this name, otherwise the host with the longest wildcard
// that matches, otherwise the oldest host whose regular expression matches, otherwise the fallback host.
func (x *index) lookup(name string) *host {
	if h := x.exact.get(name); h != nil {
		return h
	}
	dot := strings.IndexByte(name, '.')
	if dot > 0 {
		if h := x.wildcard.get(name[dot:]); h != nil {
			return h
		}
	}
	for rest := name; len(x.deep) > 0 && dot > 0; dot = strings.IndexByte(rest[1:], '.') + 1 {
		rest = rest[dot:]
		if h := x.deep[rest]; h != nil {
			return h
		}
	}
	if len(x.expressions) > 0 && name != "" && len(name) <= pattern.MaxNameLength {
		if h, ok := x.search(name); ok {
			return h
		}
	}
	return x.fallback
}

// search returns the oldest host whose regular expression matches name. ok is false if no expression matches. If
// matching takes too long, search returns nil and true, so that the fallback host does not serve a name that may belong
// to another host.
func (x *index) search(name string) (found *host, ok bool) {
	budget := pattern.NewNameBudget()
	for _, h := range x.expressions {
		if h.expression == nil {
			continue
		}
		switch h.expression.Search(name, &budget) {
		case pattern.Yes:
			return h, true
		case pattern.Unknown:
			return nil, true
		case pattern.No:
		}
	}
	return nil, false
}

func (x *index) get(name string) *host {
	switch {
	case name == "":
		return x.fallback
	case strings.HasPrefix(name, "*."):
		return x.wildcard.get(name[1:])
	case strings.HasPrefix(name, "**."):
		return x.deep[name[2:]]
	case strings.HasPrefix(name, "~"):
		if i := slices.IndexFunc(x.expressions, func(h *host) bool { return h.name == name }); i >= 0 {
			return x.expressions[i]
		}
		return nil
	}
	return x.exact.get(name)
}

// x.all(yield) calls yield with every host of the index.
func (x *index) all(yield func(*host)) {
	for _, group := range []*hosts{&x.exact, &x.wildcard} {
		for _, m := range group {
			for _, h := range m {
				yield(h)
			}
		}
	}
	for _, h := range x.deep {
		yield(h)
	}
	for _, h := range x.expressions {
		yield(h)
	}
	if x.fallback != nil {
		yield(x.fallback)
	}
}
