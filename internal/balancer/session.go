package balancer

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
)

// A session cookie is "key|tag", as that of ingress-nginx. The tag is the hash of the backend: cookies of one name may come
// from several. The key is the hash of an address with a persistent cookie, and else random, a key for the ring. So every
// replica finds the endpoint, and no client reads an address in it; whoever knows some can still tell which one it is.

// maxKey is how long a key may be. Ours are 32 bytes.
const maxKey = 64

// label is what cookies call an endpoint, or, without an address, a backend.
func label(backend, address string) string {
	sum := sha256.Sum256([]byte(backend + "\x00" + address))
	return hex.EncodeToString(sum[:16])
}

// HasSession says whether a client has a session cookie of this backend, whether its endpoint is still there or not. cookie
// returns the value of the client's cookie with a name, or nothing.
func (b *Backend) HasSession(cookie func(name string) string) bool {
	p := b.state.Load().policy
	if p.SessionCookie == nil {
		return false
	}
	key, tag, _ := strings.Cut(cookie(p.SessionCookie.Name), "|")
	return key != "" && tag == p.tag
}

// bySession keeps a client at the endpoint that its cookie tells.
func (p *pick) bySession(session *ir.SessionCookie) Choice {
	c := Choice{Session: session}
	key, own := p.owner(session)
	switch {
	case own != nil && p.mayKeyed(own):
		c.Endpoint = own
	case own != nil && !session.ChangeOnFailure:
		// The cookie stays, and with it the client comes back.
		c.Endpoint = p.byKey(hash(key))
	default:
		key, c.Endpoint = p.newSession(session)
		if c.Endpoint != own {
			c.Cookie = key + "|" + p.state.policy.tag
		}
	}
	return c
}

// owner returns the key of the client's cookie, and the endpoint that it tells, or nil.
func (p *pick) owner(session *ir.SessionCookie) (string, *Endpoint) {
	key, tag, _ := strings.Cut(p.asker.Cookie(session.Name), "|")
	if tag != p.state.policy.tag || key == "" || len(key) > maxKey {
		return "", nil
	}
	if session.Persistent {
		return key, p.state.byLabel[key]
	}
	return key, p.place(hash(key))
}

func (p *pick) place(at uint64) *Endpoint { return p.state.ring.at(p.state.ring.find(at)) }

// newSession chooses an endpoint for a client that has none.
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

// randomKey need not be a secret: whoever makes one up gets an endpoint, too.
func randomKey() string {
	return strconv.FormatUint(rand.Uint64(), 36) + strconv.FormatUint(rand.Uint64(), 36)
}
