package balancer

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// A session cookie has the form "key|tag", as in ingress-nginx. The tag is a hash of the backend, because several
// backends may use cookies with the same name. The key is the hash of the endpoint's address for a persistent cookie,
// otherwise a random key for the ring. So every replica finds the endpoint, and the cookie does not contain an address.
// A client that knows some addresses can still find out which one it uses.

// maxKey is the maximum length in bytes of the key in a session cookie. The keys that we create have at most 32 bytes.
const maxKey = 64

// label returns the string that identifies an endpoint of a backend in session cookies. If address is empty, it returns
// the tag, which identifies the backend itself.
func label(backend, address string) string {
	sum := sha256.Sum256([]byte(backend + "\x00" + address))
	return hex.EncodeToString(sum[:16])
}

// HasSession reports whether a client has a session cookie of this backend, even if the cookie's endpoint no longer
// exists. cookie returns the value of the client's cookie with the given name, or "".
func (b *Backend) HasSession(cookie func(name string) string) bool {
	p := b.state.Load().policy
	if p.SessionCookie == nil {
		return false
	}
	key, tag, _ := strings.Cut(cookie(p.SessionCookie.Name), "|")
	return key != "" && tag == p.tag
}

// bySession returns the endpoint that the client's session cookie selects, if it may be used. Otherwise it chooses
// another endpoint.
func (p *pick) bySession(session *ir.SessionCookie) Choice {
	c := Choice{Session: session}
	key, own := p.owner(session)
	switch {
	case own != nil && p.mayKeyed(own):
		c.Endpoint = own
	case own != nil && !session.ChangeOnFailure:
		// Keep the cookie, so that the client returns to its endpoint when the endpoint is usable again.
		c.Endpoint = p.byKey(hash(key))
	default:
		key, c.Endpoint = p.newSession(session)
		if c.Endpoint != own {
			c.Cookie = key + "|" + p.state.policy.tag
		}
	}
	return c
}

// owner returns the key in the client's session cookie, and the endpoint to which the key belongs. The endpoint is nil
// if there is no valid cookie or the endpoint no longer exists.
func (p *pick) owner(session *ir.SessionCookie) (string, *Endpoint) {
	key, tag, _ := strings.Cut(p.client.Cookie(session.Name), "|")
	if tag != p.state.policy.tag || key == "" || len(key) > maxKey {
		return "", nil
	}
	if session.Persistent {
		return key, p.state.byLabel[key]
	}
	return key, p.place(hash(key))
}

func (p *pick) place(at uint64) *Endpoint { return p.state.ring.at(p.state.ring.find(at)) }

// newSession chooses an endpoint for a client without a session, and returns the key for the session cookie.
func (p *pick) newSession(session *ir.SessionCookie) (key string, e *Endpoint) {
	if session.Persistent {
		e = p.byClient()
		return label(p.backend.id, e.address), e
	}
	for range draws {
		key = randomKey()
		if e = p.place(hash(key)); p.ripe(e) && p.mayKeyed(e) {
			return key, e
		}
	}
	return key, p.byKey(hash(key))
}

// randomKey returns a random key for a session cookie. The key need not be secret: a client that makes up a key can
// only choose its own endpoint.
func randomKey() string {
	return strconv.FormatUint(rand.Uint64(), 36) + strconv.FormatUint(rand.Uint64(), 36)
}
