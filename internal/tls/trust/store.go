package trust

import (
	"crypto/sha256"
	"time"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/references"
	tlssecret "github.com/k8singress/k8singress/internal/tls/secret"
)

// Store holds an Authority for each Secret with CA certificates or a client certificate that the configuration refers
// to. The method Authority is safe for concurrent use; all other methods must be called from a single goroutine.
type Store struct {
	book *references.Book[ir.Name, needs, *entry]
	// checked is the time of the last call of Problems.
	checked time.Time
	// changed is called with the name of a Secret after the contents of its Authority have changed. It may be nil.
	changed func(secret ir.Name)
}

// entry is the Authority of a Secret, with additional data that only the Store uses.
type entry struct {
	*Authority
	parsed bool
	sum    [sha256.Size]byte
}

// NewStore returns a store without authorities.
func NewStore() *Store {
	return &Store{book: references.NewBook[ir.Name, needs](func(secret ir.Name) *entry {
		return &entry{Authority: newAuthority(secret)}
	})}
}

// OnChange sets a function that is called with the name of a Secret after the contents of its Authority have changed. f
// is called on the goroutine that has called SetSecret.
func (s *Store) OnChange(f func(secret ir.Name)) { s.changed = f }

// Update applies a configuration change to the references to Secrets. It returns the Secrets to which the configuration
// did not refer before. All verifications with such a Secret fail until SetSecret is called for it, so Update must be
// called before the new configuration is used. If the configuration no longer refers to a Secret, the Secret is removed
// from the store, but its Authority can still be used with its last contents.
func (s *Store) Update(d *document.Delta) (added []ir.Name) { return s.book.Update(referencesOf(d)) }

// Authority returns the Authority of a Secret. If the configuration does not refer to the Secret, all verifications
// with the result fail, even if the configuration refers to the Secret later. In this case, call Authority again.
// Authority returns nil for the zero name, as NewClient expects for TLS settings without a Secret.
func (s *Store) Authority(secret ir.Name) *Authority {
	if secret.IsZero() {
		return nil
	}
	return s.book.Get(secret).Authority
}

// SetSecret sets the contents of a Secret; present is false if the Secret does not exist. It does nothing if the
// configuration does not refer to the Secret. It parses the contents only if they have changed.
func (s *Store) SetSecret(name ir.Name, data map[string][]byte, present bool) {
	e, found := s.book.Find(name)
	if !found {
		return
	}
	if !present {
		e.parsed = false
		s.replace(e, unread(errMissing))
		return
	}
	sum := tlssecret.Sum(data[authorityKey], data[revocationKey], data[tlssecret.CertificateKey],
		data[tlssecret.PrivateKey])
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
