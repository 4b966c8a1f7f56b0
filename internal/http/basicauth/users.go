// Package basicauth verifies user names and passwords for basic authentication. The user lists are stored in Secrets. A
// Secret is parsed each time it changes.
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

// Users holds the users of one Secret. As long as the running configuration refers to the Secret, the Store returns the
// same *Users. When the Secret changes, its contents are replaced atomically. If the Secret is missing or invalid, all
// clients are rejected.
type Users struct {
	of       ir.Users
	gate     *gate
	contents atomic.Pointer[contents]
}

// contents holds the users of one version of a Secret.
type contents struct {
	// err is the reason why the Secret cannot be used. It is nil if the Secret is valid.
	err error
	*userList
	verified
}

// Errors returned by Verify, in addition to ErrBusy and the errors of its context.
var (
	// ErrUnavailable means that the Secret is missing or contains no valid user.
	ErrUnavailable = errors.New("the Secret with the users cannot be used")
	// ErrRefused means that the user name or the password is wrong.
	ErrRefused = errors.New("the user name or the password is wrong")
)

// maxCredentials is the maximum length of credentials in bytes. It is limited because some hash functions take longer
// for longer passwords.
const maxCredentials = 1024

// Verified reports whether credentials were already verified against the current contents of the Secret. credentials is
// the part of the Authorization header after "Basic".
func (u *Users) Verified(credentials string) bool {
	c := u.contents.Load()
	return c.err == nil && len(credentials) <= maxCredentials && c.has(c.digest(credentials))
}

// Available reports whether the Secret contains a valid user list.
func (u *Users) Available() bool { return u.contents.Load().err == nil }

// Verify checks credentials against the user list. It returns nil if the user name and password are correct.
// Verification is slow, and may have to wait for other verifications; it stops waiting when ctx ends.
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
	// While this request waited, another request of the same client may have verified the same credentials. Browsers
	// often send such requests in parallel.
	if c.has(sum) {
		return nil
	}
	if !c.matches(name, password) {
		return ErrRefused
	}
	c.keep(sum)
	return nil
}

// parse decodes Base64-encoded credentials into a user name and a password. ok is false if they are invalid.
func parse(credentials string) (name, password string, ok bool) {
	// The Base64 decoder ignores line breaks, so they must be rejected here.
	if len(credentials) > maxCredentials || strings.ContainsAny(credentials, "\r\n") {
		return "", "", false
	}
	text, err := base64.StdEncoding.Strict().DecodeString(credentials)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), ":")
}

// matches reports whether the password of a user is correct. It takes the same time if the user does not exist, so that
// clients cannot find out which users exist.
func (c *contents) matches(name, text string) bool {
	want, known := c.passwords[name]
	if !known {
		want = c.decoy(name)
	}
	return want.MatchesPassword(text) && known
}

// decoy returns the password of an arbitrary user, to be verified in place of a user name that does not exist. It
// always returns the same password for the same name.
func (c *contents) decoy(name string) password {
	sum := c.digest(name)
	return c.passwords[c.order[binary.NativeEndian.Uint64(sum[:])%uint64(len(c.order))]]
}

// digest is a keyed hash that identifies credentials in the cache.
type digest [sha256.Size]byte

// maxVerified is the maximum number of verified credentials that are cached for a Secret.
const maxVerified = 4096

// verified is a cache of credentials that were verified successfully.
type verified struct {
	// key is a random prefix for the hash, so that the digests are useless outside this process.
	key  [sha256.BlockSize]byte
	mu   sync.RWMutex
	sums map[digest]struct{}
}

func (v *verified) init() {
	// rand.Read never returns an error, so it is safe to ignore it.
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

// keep adds a digest to the cache. If the cache is full, an arbitrary digest is removed first.
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

// none returns contents without users. err is the reason why the Secret cannot be used.
func none(err error) *contents { return &contents{err: err} }

// contentsOf parses the users in a Secret. Error messages are written for the owner of the Secret.
func contentsOf(data map[string][]byte, asMap bool) *contents {
	all, err := read(data, asMap)
	if err != nil {
		return none(err)
	}
	c := &contents{userList: all}
	c.init()
	return c
}
