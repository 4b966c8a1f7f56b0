package trust

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/tlssecret"
)

// Store holds the authorities that parts of the document refer to. Authority may be called on any goroutine; the other
// methods are for one.
type Store struct {
	// mu is for authorities, which Authority reads on any goroutine.
	mu          sync.RWMutex
	authorities map[ir.Name]*entry
	// references are by the part of the document that refers.
	references map[string][]*reference
	// asked is when Problems was called last.
	asked time.Time
	// changed is called with the name of a Secret whose contents have changed.
	changed func(secret ir.Name)
}

// entry is an authority with what only the store needs to know of it.
type entry struct {
	*Authority
	// users are the parts of the document that refer to it.
	users  map[string]struct{}
	parsed bool
	sum    [sha256.Size]byte
}

// NewStore returns a store without authorities.
func NewStore() *Store {
	return &Store{authorities: map[ir.Name]*entry{}, references: map[string][]*reference{}}
}

// OnChange has f called with the name of a Secret when the contents of its Authority have changed. f runs on the goroutine
// that changes the store.
func (s *Store) OnChange(f func(secret ir.Name)) { s.changed = f }

// Update changes which parts of the document refer to which Secrets. It returns the Secrets that no part has referred to
// before: until SetSecret sets their contents every verification with them fails, so call it before the delta is in
// effect. A Secret without a reference is forgotten; its Authority stays as it was.
func (s *Store) Update(d *document.Delta) (added []ir.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	removed := false
	for user, refs := range references(d) {
		for _, old := range s.references[user] {
			delete(s.authorities[old.secret].users, user)
			removed = true
		}
		delete(s.references, user)
		for _, ref := range refs {
			if s.refer(user, ref) {
				added = append(added, ref.secret)
			}
		}
	}
	if removed {
		maps.DeleteFunc(s.authorities, func(_ ir.Name, e *entry) bool { return len(e.users) == 0 })
	}
	slices.SortFunc(added, ir.Name.Compare)
	return added
}

func (s *Store) refer(user string, ref *reference) (added bool) {
	e := s.authorities[ref.secret]
	if added = e == nil; added {
		e = &entry{Authority: newAuthority(ref.secret), users: map[string]struct{}{}}
		s.authorities[ref.secret] = e
	}
	e.users[user] = struct{}{}
	s.references[user] = append(s.references[user], ref)
	return added
}

// Authority returns the authority of a Secret. With that of a Secret that nothing refers to, every verification fails, now
// and later.
func (s *Store) Authority(secret ir.Name) *Authority {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if e := s.authorities[secret]; e != nil {
		return e.Authority
	}
	return newAuthority(secret)
}

// SetSecret sets the contents of a Secret; present is false for a Secret that does not exist. It does nothing for a Secret
// that nothing refers to. Contents are read only if they differ from the last ones.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	e := s.authorities[name]
	if e == nil {
		return
	}
	if !present {
		e.parsed = false
		s.replace(e, unread(errMissing))
		return
	}
	sum := tlssecret.Sum(data[authorityKey], data[revocationKey], data[tlssecret.CertificateKey], data[tlssecret.PrivateKey])
	if e.parsed && e.sum == sum {
		return
	}
	e.parsed, e.sum = true, sum
	s.replace(e, ReadContents(data))
}

func (s *Store) replace(e *entry, by *Contents) {
	e.contents.Store(by)
	if s.changed != nil {
		s.changed(e.name)
	}
}
