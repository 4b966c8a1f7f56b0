package certs

import (
	"crypto/sha256"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/k8singress/k8singress/internal/document"
)

// trust knows the authorities that somebody refers to.
type trust struct {
	// mu is for authorities, which Authority reads on any goroutine. The rest belongs to the one that changes the store.
	mu          sync.RWMutex
	authorities map[string]*followed
	// references are by who refers.
	references map[string][]*document.Reference
	asked      time.Time
	// changed is told the name of a Secret whose contents are others by now.
	changed func(secret string)
}

// followed is an authority with what only its owner needs to know.
type followed struct {
	*Authority
	// users are those who refer to it.
	users  map[string]struct{}
	parsed bool
	sum    [sha256.Size]byte
}

// OnTrust has f called with the name of a Secret, "namespace/name", when its Authority has other contents. It is called on
// the goroutine that changes the store.
func (s *Store) OnTrust(f func(secret string)) { s.trust.changed = f }

// Follow changes who refers to which Secrets for what they say of trust; nil is somebody who refers to none. It returns the
// Secrets that nobody has referred to before: until SetSecret tells what is in them, whoever has to be verified is kept
// out, so tell it before the references are in effect. A Secret that nobody refers to is forgotten; its Authority stays as
// it was.
func (s *Store) Follow(changes iter.Seq2[string, []*document.Reference]) (added []string) {
	t := &s.trust
	t.mu.Lock()
	defer t.mu.Unlock()
	left := false
	for user, refs := range changes {
		for _, old := range t.references[user] {
			delete(t.authorities[old.Secret].users, user)
			left = true
		}
		delete(t.references, user)
		for _, ref := range refs {
			if t.refer(user, ref) {
				added = append(added, ref.Secret)
			}
		}
	}
	if left {
		maps.DeleteFunc(t.authorities, func(_ string, f *followed) bool { return len(f.users) == 0 })
	}
	slices.Sort(added)
	return added
}

func (t *trust) refer(user string, ref *document.Reference) (added bool) {
	f := t.authorities[ref.Secret]
	if added = f == nil; added {
		f = &followed{Authority: newAuthority(ref.Secret), users: map[string]struct{}{}}
		t.authorities[ref.Secret] = f
	}
	f.users[user] = struct{}{}
	t.references[user] = append(t.references[user], ref)
	return added
}

// Authority returns the authority of a Secret, "namespace/name". It may be called on any goroutine. That of a Secret that
// nobody refers to, as Follow was told, lets nobody in, now and later.
func (s *Store) Authority(secret string) *Authority {
	s.trust.mu.RLock()
	defer s.trust.mu.RUnlock()
	if f := s.trust.authorities[secret]; f != nil {
		return f.Authority
	}
	return newAuthority(secret)
}

// setSecret tells the contents of a Secret. They are read only if they are others than before.
func (t *trust) setSecret(name string, data map[string][]byte, present bool) {
	f := t.authorities[name]
	if f == nil {
		return
	}
	if !present {
		f.parsed = false
		t.replace(f, unread(errMissing))
		return
	}
	sum := sumOf(data[authorityKey], data[revocationKey], data[certKey], data[privateKey])
	if f.parsed && f.sum == sum {
		return
	}
	f.parsed, f.sum = true, sum
	t.replace(f, ReadContents(data))
}

func (t *trust) replace(f *followed, by *Contents) {
	f.contents.Store(by)
	if t.changed != nil {
		t.changed(f.name)
	}
}
