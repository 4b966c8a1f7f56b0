// Package basicauth knows the users that clients may be, with their passwords. They come from Secrets, and are read when a Secret
// changes.
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

	"github.com/k8singress/k8singress/internal/ir"
)

// Users are those of one Secret. The value stays the same while something refers to the Secret, and its contents are replaced as a
// whole when the Secret changes. Without contents that can be used nobody gets in.
type Users struct {
	of       ir.Users
	gate     *gate
	contents atomic.Pointer[contents]
}

// contents are the users of one version of a Secret.
type contents struct {
	// err is why there are none.
	err error
	*people
	verified
}

// Errors of Verify, besides that of a context.
var (
	// ErrUnavailable says that there are no users to compare with.
	ErrUnavailable = errors.New("the Secret of the users cannot be used")
	// ErrRefused says that the name or the password is wrong.
	ErrRefused = errors.New("the name or the password is wrong")
)

// longest is how long credentials may be as a client sends them: some hashes take the longer, the longer a password is.
const longest = 1024

// Verified says whether credentials were verified before, with the contents that the Secret has now. They are what stands behind
// "Basic" in the header Authorization.
func (u *Users) Verified(credentials string) bool {
	c := u.contents.Load()
	return c.err == nil && len(credentials) <= longest && c.has(c.digest(credentials))
}

// Available says whether there are users to compare with.
func (u *Users) Available() bool { return u.contents.Load().err == nil }

// Verify says whether credentials are those of a user. It takes long, and may wait for others that take long until ctx ends.
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
	// The first of several requests of one client, such as those of a browser, has made it known.
	if c.has(sum) {
		return nil
	}
	if !c.matches(name, password) {
		return ErrRefused
	}
	c.keep(sum)
	return nil
}

// parse takes credentials apart.
func parse(credentials string) (name, password string, ok bool) {
	// The decoder passes over line breaks.
	if len(credentials) > longest || strings.ContainsAny(credentials, "\r\n") {
		return "", "", false
	}
	text, err := base64.StdEncoding.Strict().DecodeString(credentials)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), ":")
}

// matches takes as long for a name that is not known as for one that is: a client is not to learn which there are.
func (c *contents) matches(name, text string) bool {
	want, known := c.passwords[name]
	if !known {
		want = c.decoy(name)
	}
	return want.MatchesPassword(text) && known
}

// decoy returns the password of any user, and of the same one each time.
func (c *contents) decoy(name string) password {
	sum := c.digest(name)
	return c.passwords[c.order[binary.NativeEndian.Uint64(sum[:])%uint64(len(c.order))]]
}

// digest stands for credentials in memory.
type digest [sha256.Size]byte

// mostVerified bounds the credentials that are remembered for one Secret.
const mostVerified = 4096

// verified are credentials that were found to be right.
type verified struct {
	// key makes digests that mean nothing elsewhere.
	key  [sha256.BlockSize]byte
	mu   sync.RWMutex
	sums map[digest]struct{}
}

func (v *verified) init() {
	// It does not fail.
	_, _ = rand.Read(v.key[:])
	v.sums = map[digest]struct{}{}
}

// digest takes credentials that are not too long.
func (v *verified) digest(credentials string) digest {
	var text [sha256.BlockSize + longest]byte
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

// keep forgets another one where there is no room.
func (v *verified) keep(sum digest) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.sums) >= mostVerified {
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

// none are the contents of a Secret that cannot be used.
func none(err error) *contents { return &contents{err: err} }

// contentsOf reads a Secret. Errors are worded for its owner.
func contentsOf(data map[string][]byte, asMap bool) *contents {
	all, err := read(data, asMap)
	if err != nil {
		return none(err)
	}
	c := &contents{people: all}
	c.init()
	return c
}
