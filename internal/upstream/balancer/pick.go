package balancer

import (
	"math/rand/v2"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// ClientInfo provides the properties of a request, or of its client, by which an endpoint is chosen.
type ClientInfo interface {
	// Hash returns the hash key of the request, by expanding the template t.
	Hash(t *nginx.Template) string
	// Cookie returns the value of the request's cookie with the given name, or "".
	Cookie(name string) string
	// ClientIP returns the IP address of the client, or "".
	ClientIP() string
}

// draws is the maximum number of attempts to find a usable endpoint at random. If all attempts fail, the endpoints are
// searched in order.
const draws = 16

// Pick chooses an endpoint. It skips ejected and unhealthy endpoints, and the endpoints in tried, where the request has
// already failed, as long as there are other endpoints. It returns false only if the backend has no endpoints. If a is
// nil, neither hashing nor sessions are used.
func (b *Backend) Pick(a ClientInfo, tried []*Endpoint) (Choice, bool) {
	s := b.state.Load()
	if len(s.endpoints) == 0 {
		return Choice{}, false
	}
	p := pick{backend: b, state: s, client: a, tried: tried}
	p.begin()
	c := p.choose()
	c.trial = c.Endpoint.health.until.Load() != 0
	return c, true
}

// pick is the state of one call of Pick.
type pick struct {
	backend *Backend
	state   *state
	client  ClientInfo
	tried   []*Endpoint
	// time is the current time. It is zero until the method now is called.
	time int64
	// health is set if ejected and unhealthy endpoints must be skipped. slow is set if any endpoint is in slow start.
	health, slow bool
	// at is the position of the request on the hash ring. It is used only if keyed is set.
	at    uint64
	keyed bool
}

func (p *pick) begin() {
	out := int(p.backend.out.Load())
	// If all endpoints are ejected or unhealthy, the health checks are probably wrong, so ignore the health of the
	// endpoints.
	p.health = out > 0 && out < len(p.state.endpoints)
	if until := p.backend.slowUntil.Load(); until != 0 {
		if p.slow = p.now() < until; !p.slow {
			p.backend.slowUntil.CompareAndSwap(until, 0)
		}
	}
}

func (p *pick) now() int64 {
	if p.time == 0 {
		p.time = p.backend.now()
	}
	return p.time
}

func (p *pick) choose() Choice {
	if session := p.state.policy.SessionCookie; session != nil && p.client != nil {
		return p.bySession(session)
	}
	return Choice{Endpoint: p.byClient()}
}

// byClient returns the endpoint that the client used before, if the Service has session affinity. Otherwise it chooses
// an endpoint by the policy.
func (p *pick) byClient() *Endpoint {
	known := p.state.policy.clients
	if known == nil || p.client == nil {
		return p.byPolicy()
	}
	address := p.client.ClientIP()
	if address == "" {
		return p.byPolicy()
	}
	timeout := p.state.policy.ClientIP
	if e := known.get(address, p.now(), timeout); e != nil && e.listed.Load() {
		if p.mayKeyed(e) {
			return e
		}
		if slices.Contains(p.tried, e) {
			// The endpoint failed only for this request, so do not assign another endpoint to the client: its next
			// request goes to this endpoint again.
			return p.byPolicy()
		}
	}
	e := p.byPolicy()
	known.put(address, e, p.now(), timeout)
	return e
}

func (p *pick) byPolicy() *Endpoint {
	if len(p.state.endpoints) == 1 {
		return p.state.endpoints[0]
	}
	if t := p.state.policy.hashBy; t != nil && p.client != nil {
		// As in nginx, an empty key is not hashed.
		if key := p.client.Hash(t); key != "" {
			return p.byKey(hash(key))
		}
	}
	if p.health && len(p.tried) == 0 {
		if e := p.backend.due(p.now()); e != nil {
			return e
		}
	}
	return p.relax()
}

// byKey chooses the endpoint for a position on the hash ring.
func (p *pick) byKey(at uint64) *Endpoint {
	p.at, p.keyed = at, true
	return p.relax()
}

// relax chooses an endpoint. If no endpoint meets the requirements, it drops them one after the other: first it allows
// ejected and unhealthy endpoints, and then endpoints where the request has already failed.
func (p *pick) relax() *Endpoint {
	for {
		if e := p.once(); e != nil {
			return e
		}
		if !p.health {
			p.tried = nil
		}
		p.health = false
	}
}

func (p *pick) once() *Endpoint {
	if p.keyed {
		return p.along()
	}
	switch p.state.policy.Policy {
	case ir.PolicyRandom:
		return p.drawn()
	case ir.PolicyEWMA, ir.PolicyLeastRequest:
		return p.better(p.two())
	case ir.PolicyRoundRobin, ir.PolicyHash:
	}
	return p.inTurn()
}

// The result of the method may is true if the request can be sent to the endpoint e: e is neither ejected nor
// unhealthy, and the request has not already failed there.
func (p *pick) may(e *Endpoint) bool {
	return (!p.health || !e.out()) && (len(p.tried) == 0 || !slices.Contains(p.tried, e))
}

// mayKeyed is like the method may, for the endpoint that the request's hash key or session selects. If this endpoint is
// ejected, it may still get the request as a trial, which shows whether it has recovered. A request that has already
// failed on another endpoint is not used as a trial.
func (p *pick) mayKeyed(e *Endpoint) bool {
	return p.may(e) || p.health && len(p.tried) == 0 && e.claim(p.now())
}

// ripe reports whether a new endpoint may be chosen. During the slow start of the endpoint, it returns true with a
// probability that grows with time. Otherwise it always returns true.
func (p *pick) ripe(e *Endpoint) bool {
	if !p.slow {
		return true
	}
	since := e.since.Load()
	if since == 0 {
		return true
	}
	age := float64(p.now()-since) / float64(p.state.policy.SlowStart)
	return age >= 1 || rand.Float64() < 0.1+0.9*age
}

// inTurn chooses an endpoint by round robin. It increments the counter for each endpoint that it skips; otherwise the
// endpoint after a skipped endpoint would also get the requests of the skipped endpoint.
func (p *pick) inTurn() *Endpoint {
	list, turn := p.state.endpoints, uint64(0)
	for range len(list) + draws {
		turn = p.backend.turn.Add(1)
		if e := list[turn%uint64(len(list))]; p.may(e) && p.ripe(e) {
			return e
		}
	}
	return p.scan(int(turn % uint64(len(list))))
}

func (p *pick) drawn() *Endpoint {
	list := p.state.endpoints
	for range draws {
		if e := list[rand.IntN(len(list))]; p.may(e) && p.ripe(e) {
			return e
		}
	}
	return p.scan(rand.IntN(len(list)))
}

// scan returns the first endpoint that may be used, or nil. It starts at the index first of the endpoint list.
func (p *pick) scan(first int) *Endpoint {
	list := p.state.endpoints
	for i := range list {
		if e := list[(first+i)%len(list)]; p.may(e) {
			return e
		}
	}
	return nil
}

// The method two returns two random endpoints among the endpoints that may be used. They are different if possible.
// Either result may be nil.
func (p *pick) two() (*Endpoint, *Endpoint) {
	list := p.state.endpoints
	if !p.health && !p.slow && len(p.tried) == 0 && len(list) > 1 {
		i, j := rand.IntN(len(list)), rand.IntN(len(list)-1)
		if j >= i {
			j++
		}
		return list[i], list[j]
	}
	a, b := p.drawn(), p.drawn()
	if a == b {
		b = p.drawn()
	}
	return a, b
}

// better returns the endpoint that is likely to respond earlier. a and b may be nil, because the health of endpoints
// can change while they are chosen.
func (p *pick) better(a, b *Endpoint) *Endpoint {
	if a == nil || a == b {
		return b
	}
	if b == nil {
		return a
	}
	if p.state.policy.Policy == ir.PolicyLeastRequest {
		if b.inFlight.Load() < a.inFlight.Load() {
			return b
		}
		return a
	}
	if now := p.now(); b.cost(now) < a.cost(now) {
		return b
	}
	return a
}

// cost estimates how long the next request to an endpoint takes. If there are no measurements, it depends only on the
// number of requests in flight.
func (e *Endpoint) cost(now int64) float64 {
	const minLatency = 1e-6
	return (e.latency.read(now) + minLatency) * float64(e.inFlight.Load()+1)
}
