// Package basicauth verifies the names and passwords of clients for basic authentication. The user lists come from
// Secrets and are parsed when a Secret changes.
package basicauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// Users holds the users of one Secret. The pointer stays the same as long as the document refers to the Secret. When
// the Secret changes, the contents are replaced as a whole. Without valid contents, all clients are rejected.
type Users struct {
	of       ir.Users
	gate     *gate
	contents atomic.Pointer[contents]
}

// contents holds the users of one version of a Secret.
type contents struct {
	// err is the reason why there are no users, or nil.
	err error
	*userList
	verified
}

// Errors of Verify, in addition to ErrBusy and the error of a context.
var (
	// ErrUnavailable means that there is no valid user list.
	ErrUnavailable = errors.New("the Secret with the users cannot be used")
	// ErrRefused means that the user name or the password is wrong.
	ErrRefused = errors.New("the user name or the password is wrong")
)

// maxCredentials is the maximum length in bytes of credentials, because some hashes take longer for longer passwords.
const maxCredentials = 1024

// Verified reports whether credentials were already verified against the current contents of the Secret. credentials is
// the text after "Basic" in the Authorization header.
func (u *Users) Verified(credentials string) bool {
	c := u.contents.Load()
	return c.err == nil && len(credentials) <= maxCredentials && c.has(c.digest(credentials))
}

// Available reports whether there is a valid user list.
func (u *Users) Available() bool { return u.contents.Load().err == nil }

// Verify checks credentials. It returns nil if they are right. The check is slow, and may wait for other checks until
// ctx ends.
func (u *Users) Verify(ctx context.Context, credentials string) error {
	c := u.contents.Load()
	if c.err != nil {
		return ErrUnavailable
	}
	name, password, ok := parse(credentials)
	if !ok {
		return ErrRefused
	}
	sum := c.digest(credentials)
	leave, err := u.gate.enter(ctx, u.of.Secret.Namespace)
	if err != nil {
		return err
	}
	defer leave()
	// Another request of the same client may have verified the credentials during the wait, as with the parallel
	// requests of a browser.
	if c.has(sum) {
		return nil
	}
	if !c.matches(name, password) {
		return ErrRefused
	}
	c.keep(sum)
	return nil
}

// parse decodes credentials into name and password.
func parse(credentials string) (name, password string, ok bool) {
	// The decoder ignores line breaks.
	if len(credentials) > maxCredentials || strings.ContainsAny(credentials, "\r\n") {
		return "", "", false
	}
	text, err := base64.StdEncoding.Strict().DecodeString(credentials)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), ":")
}

// matches checks a password. It takes the same time for unknown names, so that clients cannot find out which names
// exist.
func (c *contents) matches(name, text string) bool {
	want, known := c.passwords[name]
	if !known {
		want = c.decoy(name)
	}
	return want.MatchesPassword(text) && known
}

// decoy returns the password of some user. For the same name it always returns the same one.
func (c *contents) decoy(name string) password {
	sum := c.digest(name)
	return c.passwords[c.order[binary.NativeEndian.Uint64(sum[:])%uint64(len(c.order))]]
}

// digest identifies credentials in memory.
type digest [sha256.Size]byte

// maxVerified is the maximum number of verified credentials that are cached for a Secret.
const maxVerified = 4096

// verified is a cache of credentials that were verified successfully.
type verified struct {
	// key is a random prefix, so that the digests cannot be used elsewhere.
	key  [sha256.BlockSize]byte
	mu   sync.RWMutex
	sums map[digest]struct{}
}

func (v *verified) init() {
	// rand.Read never returns an error.
	_, _ = rand.Read(v.key[:])
	v.sums = map[digest]struct{}{}
}

// digest returns the digest of credentials, which must not be longer than maxCredentials.
func (v *verified) digest(credentials string) digest {
	var text [sha256.BlockSize + maxCredentials]byte
	n := copy(text[:], v.key[:])
	n += copy(text[n:], credentials)
	return sha256.Sum256(text[:n])
}

func (v *verified) has(sum digest) bool {
	v.mu.RLock()
	_, ok := v.sums[sum]
	v.mu.RUnlock()
	return ok
}

// keep stores a digest. If the cache is full, it removes another one.
func (v *verified) keep(sum digest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sums) >= maxVerified {
		for other := range v.sums {
			delete(v.sums, other)
			break
		}
	}
	v.sums[sum] = struct{}{}
}

var (
	errUnknown = errors.New("the Secret is not known")
	errMissing = errors.New("the Secret does not exist")
)

// none returns the contents of a Secret that is not usable.
func none(err error) *contents { return &contents{err: err} }

// contentsOf parses a Secret. Its errors are written for the owner of the Secret.
func contentsOf(data map[string][]byte, asMap bool) *contents {
	all, err := read(data, asMap)
	if err != nil {
		return none(err)
	}
	c := &contents{userList: all}
	c.init()
	return c
}
