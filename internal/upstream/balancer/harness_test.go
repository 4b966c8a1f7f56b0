package balancer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// world is a backend with a clock that the test controls.
type world struct {
	*Backend
	t    testing.TB
	time atomic.Int64
}

func newWorld(t testing.TB, lb *ir.LoadBalancing, n int) *world {
	w := &world{Backend: New("shop/web/80"), t: t}
	w.time.Store(int64(time.Hour))
	w.now = w.time.Load
	w.SetPolicy(lb)
	w.SetEndpoints(addresses(n))
	return w
}

func addresses(n int) []ir.Endpoint {
	l := make([]ir.Endpoint, n)
	for i := range l {
		l[i].Address = fmt.Sprintf("10.0.%d.%d:80", i/250, i%250)
	}
	return l
}

func (w *world) pass(d time.Duration) { w.time.Add(int64(d)) }

func (w *world) pick(a ClientInfo, tried ...*Endpoint) Choice {
	w.t.Helper()
	c, ok := w.Pick(a, tried)
	if !ok {
		w.t.Fatal("no endpoint")
	}
	return c
}

// request picks an endpoint, and reports the result of the request.
func (w *world) request(a ClientInfo, failed bool) string {
	w.t.Helper()
	c := w.pick(a)
	c.Begin()
	c.Observe(time.Millisecond, failed)
	c.End()
	return c.Endpoint.Address()
}

// endpoint returns the endpoint with an index.
func (w *world) endpoint(i int) *Endpoint { return w.state.Load().endpoints[i] }

// fail lets an endpoint fail n times in a row.
func (w *world) fail(e *Endpoint, n int) {
	for range n {
		Choice{Endpoint: e}.Observe(0, true)
	}
}

// counts returns how many of n requests each endpoint gets.
func (w *world) counts(n int, a ClientInfo) map[string]int {
	count := map[string]int{}
	for range n {
		count[w.pick(a).Endpoint.Address()]++
	}
	return count
}

func (w *world) between(what string, got, least, most int) {
	w.t.Helper()
	if got < least || got > most {
		w.t.Errorf("%s: %d, want %d to %d", what, got, least, most)
	}
}

// visitor is an ClientInfo with a cookie, an address and a key.
type visitor struct{ cookie, ip, key string }

func (v *visitor) Hash(*nginx.Template) string { return v.key }
func (v *visitor) ClientIP() string            { return v.ip }
func (v *visitor) Cookie(name string) string {
	if name != "session" {
		return ""
	}
	return v.cookie
}

func only(p ir.Policy) *ir.LoadBalancing { return &ir.LoadBalancing{Policy: p} }

func hashed() *ir.LoadBalancing { return &ir.LoadBalancing{Policy: ir.PolicyHash, HashBy: "$arg_key"} }

var unkeyed = []ir.Policy{"", ir.PolicyRoundRobin, ir.PolicyEWMA, ir.PolicyLeastRequest, ir.PolicyRandom}
