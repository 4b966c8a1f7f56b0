package basicauth

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/references"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Store holds the user lists that the running configuration refers to. The method Users is safe for concurrent use. All
// other methods must be called from a single goroutine.
type Store struct {
	book *references.Book[ir.Users, struct{}, *entry]
	// changed is called after users were removed from a Secret or passwords in it were changed. Its argument identifies
	// the Secret.
	changed func(ir.Users)
}

// entry is the user list of one Secret in the store.
type entry struct {
	*Users
	sum [sha256.Size]byte
}

// reference records that a route uses the user list in a Secret.
type reference = references.Reference[ir.Users, struct{}]

// NewStore returns an empty store.
func NewStore() *Store {
	gate := newGate()
	return &Store{changed: func(ir.Users) {}, book: references.NewBook[ir.Users, struct{}](func(of ir.Users) *entry {
		u := &Users{of: of, gate: gate}
		u.contents.Store(none(errUnknown))
		return &entry{Users: u}
	})}
}

// OnChange sets a function that is called after users were removed or passwords were changed. It is not called if users
// were only added. f runs on the goroutine that changes the store.
func (s *Store) OnChange(f func(ir.Users)) { s.changed = f }

// Update applies a configuration change. It returns the Secrets that are newly referenced, and removes the user lists
// of Secrets that are no longer referenced. Call Update before the new configuration takes effect. Until SetSecret is
// called for a new Secret, all requests that need its users are rejected.
func (s *Store) Update(d *document.Delta) (added []ir.Name) {
	for _, users := range s.book.Update(references.Of(d, ofHost)) {
		added = append(added, users.Secret)
	}
	return slices.Compact(added)
}

func ofHost(user string, h *document.Host) (all []reference) {
	for _, r := range h.Routes {
		// All backends of a route require the same users, so the first one is sufficient.
		for _, users := range r.First().Users {
			next := reference{Key: users, Origin: ir.ParseRef(r.Origin),
				Field: report.AnnotationField(report.BasicAuthSecret), User: user}
			if !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// Users returns the users of a Secret. If the running configuration does not refer to the Secret, it returns Users that
// reject all clients and never change.
func (s *Store) Users(of ir.Users) *Users { return s.book.Get(of).Users }

// SetSecret sets the contents of a Secret. present is false if the Secret does not exist. SetSecret does nothing if the
// running configuration does not refer to the Secret. Unchanged contents are not parsed again, so that the cache of
// verified credentials is kept.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	for _, asMap := range []bool{false, true} {
		if e, found := s.book.Find(ir.Users{Secret: name, Map: asMap}); found {
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

// admits reports whether c contains all users in others with the same passwords. It returns true if others is invalid,
// because it then contains no users.
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
	return s.book.Problems(func(e *entry, ref *reference, hosts string) []report.Problem {
		p := e.contents.Load().check(hosts)
		if p.Message == "" {
			return nil
		}
		p.Field, p.Message = ref.Field, "Secret "+ref.Key.Secret.String()+p.Message
		return []report.Problem{p}
	})
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
