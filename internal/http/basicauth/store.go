package basicauth

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Store holds the user lists that the running configuration refers to. The method Users is safe for concurrent use. All
// other methods must be called from a single goroutine.
type Store struct {
	// mu protects entries, which the method Users reads from any goroutine.
	mu      sync.RWMutex
	entries map[ir.Users]*entry
	// references lists the routes that require authentication, keyed by their host or by their listener group
	// (listeners with their own hosts).
	references map[string][]reference
	gate       *gate
	// changed is called with a user list after users were removed from it or passwords in it were changed.
	changed func(ir.Users)
}

// entry is the user list of one Secret in the store.
type entry struct {
	*Users
	// parts is the set of hosts and listener groups (listeners with their own hosts) whose routes require the users.
	parts map[string]bool
	sum   [sha256.Size]byte
}

// reference represents a route that requires the users of a Secret.
type reference struct {
	users ir.Users
	// origin is the object whose annotations require authentication. host is the host of the route.
	origin ir.Ref
	host   string
}

// NewStore returns an empty store.
func NewStore() *Store {
	return &Store{entries: map[ir.Users]*entry{}, references: map[string][]reference{}, gate: newGate(),
		changed: func(ir.Users) {}}
}

// OnChange sets a function that is called after users were removed or passwords were changed. It is not called if users
// were only added. f runs on the goroutine that changes the store.
func (s *Store) OnChange(f func(ir.Users)) { s.changed = f }

// Update applies a configuration change. It returns the Secrets that are newly referenced, and removes the user lists
// of Secrets that are no longer referenced. Call Update before the new configuration takes effect. Until SetSecret is
// called for a new Secret, all requests that need its users are rejected.
func (s *Store) Update(d *document.Delta) (added []ir.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, h := range d.Hosts {
		added = append(added, s.replace("host "+name, ofHost(name, h))...)
	}
	for name, g := range d.ListenerGroups {
		added = append(added, s.replace("listener group "+name, ofGroup(g))...)
	}
	maps.DeleteFunc(s.entries, func(_ ir.Users, e *entry) bool { return len(e.parts) == 0 })
	slices.SortFunc(added, ir.Name.Compare)
	return slices.Compact(added)
}

func (s *Store) replace(part string, refs []reference) (added []ir.Name) {
	for _, old := range s.references[part] {
		delete(s.entries[old.users].parts, part)
	}
	delete(s.references, part)
	for _, ref := range refs {
		e := s.entries[ref.users]
		if e == nil {
			e = &entry{Users: s.newUsers(ref.users), parts: map[string]bool{}}
			s.entries[ref.users] = e
			added = append(added, ref.users.Secret)
		}
		e.parts[part] = true
	}
	if len(refs) > 0 {
		s.references[part] = refs
	}
	return added
}

func (s *Store) newUsers(of ir.Users) *Users {
	u := &Users{of: of, gate: s.gate}
	u.contents.Store(none(errUnknown))
	return u
}

func ofHost(name string, h *document.Host) (all []reference) {
	if h == nil {
		return nil
	}
	for _, r := range h.Routes {
		// All backends of a route require the same users, so the first one is sufficient.
		for _, users := range r.First().Users {
			next := reference{users, ir.ParseRef(r.Origin), cmp.Or(name, "every other host")}
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

func ofGroup(g *document.ListenerGroup) (all []reference) {
	if g == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(g.Hosts)) {
		all = append(all, ofHost(name, g.Hosts[name])...)
	}
	return all
}

// Users returns the users of a Secret. If the running configuration does not refer to the Secret, it returns Users that
// reject all clients and never change.
func (s *Store) Users(of ir.Users) *Users {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e := s.entries[of]; e != nil {
		return e.Users
	}
	return s.newUsers(of)
}

// SetSecret sets the contents of a Secret. present is false if the Secret does not exist. SetSecret does nothing if the
// running configuration does not refer to the Secret. Unchanged contents are not parsed again, so that the cache of
// verified credentials is kept.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	for _, asMap := range []bool{false, true} {
		if e := s.entries[ir.Users{Secret: name, Map: asMap}]; e != nil {
			s.set(e, data, present)
		}
	}
}

func (s *Store) set(e *entry, data map[string][]byte, present bool) {
	before := e.contents.Load()
	if !present {
		e.sum = [sha256.Size]byte{}
		e.contents.Store(none(errMissing))
	} else if sum := sumOf(data); e.sum != sum {
		e.sum = sum
		e.contents.Store(contentsOf(data, e.of.Map))
	}
	if !e.contents.Load().admits(before) {
		s.changed(e.of)
	}
}

// admits reports whether all users in others have the same password in c. It returns true if others is invalid, because
// it then contains no users.
func (c *contents) admits(others *contents) bool {
	if others.err != nil || c == others {
		return true
	}
	return c.err == nil && !slices.ContainsFunc(others.order,
		func(name string) bool { return c.passwords[name].hash != others.passwords[name].hash })
}

func sumOf(data map[string][]byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(h, "%d:%s%d:%s", len(key), key, len(data[key]), data[key])
	}
	h.Sum(sum[:0])
	return sum
}

// Problems returns an error or warning for each object that refers to a missing or invalid Secret, to be shown in the
// status of the object.
func (s *Store) Problems() []*report.Verdict {
	type userRef struct {
		users  ir.Users
		origin ir.Ref
	}
	hosts := map[userRef][]string{}
	for _, refs := range s.references {
		for _, ref := range refs {
			a := userRef{ref.users, ref.origin}
			if !slices.Contains(hosts[a], ref.host) {
				hosts[a] = append(hosts[a], ref.host)
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(hosts), func(a, b userRef) int {
		return cmp.Or(a.users.Secret.Compare(b.users.Secret), cmp.Compare(a.origin.String(), b.origin.String()))
	})
	var all []*report.Verdict
	for _, a := range sorted {
		slices.Sort(hosts[a])
		if p := s.entries[a.users].contents.Load().check(report.List(hosts[a], len(hosts[a]),
			report.MaxListed)); p.Message != "" {
			p.Field, p.Message = report.AnnotationField(report.BasicAuthSecret),
				"Secret "+a.users.Secret.String()+p.Message
			all = append(all, &report.Verdict{Object: a.origin, Problems: []report.Problem{p}})
		}
	}
	return all
}

// check returns the problem with the contents of a Secret. hosts is a list of the affected hosts for the message.
// p.Message is empty if there is no problem. Otherwise, it is the rest of a sentence, and the caller must put the name
// of the Secret in front of it.
func (c *contents) check(hosts string) (p report.Problem) {
	effect := "all requests to " + hosts + " get 503 until "
	p.Severity, p.Reason = report.Error, report.InvalidUsers
	switch {
	case errors.Is(c.err, errUnknown):
	case errors.Is(c.err, errMissing):
		p.Reason, p.Message = report.SecretNotFound, " does not exist: "+effect+"it is created"
	case c.err != nil:
		p.Message = ": " + c.err.Error() + "; " + effect + "it is valid"
	case c.skipped > 0:
		p.Severity, p.Message = report.Warning, ": these users get 401 with any password: "+c.problems()
	}
	return p
}
