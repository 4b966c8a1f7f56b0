package balancer

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/nginx"
)

// Endpoint is one address of a backend with what is known of it. It is the same one for as long as the address is in the
// list, and for a while after.
type Endpoint struct {
	address string
	backend *Backend

	inFlight atomic.Int32
	// round is that of the list in which it was last. It belongs to the writer.
	round   uint32
	latency latency
	health  health
	// since is when it joined others, from when slow start counts; zero is for those that were there from the start.
	since atomic.Int64
	// listed says that it is in the current list.
	listed atomic.Bool
	// goneAt is when it left the list. It belongs to the writer.
	goneAt int64
}

// Address returns host:port.
func (e *Endpoint) Address() string { return e.address }

// Listed says whether it is in the current list of its backend.
func (e *Endpoint) Listed() bool { return e.listed.Load() }

// InFlight returns how many requests are under way.
func (e *Endpoint) InFlight() int { return int(e.inFlight.Load()) }

// Choice is the endpoint for one attempt.
type Choice struct {
	Endpoint *Endpoint
	// Cookie is the value of the session cookie to set; empty is none. Session is how to set it, and nil for a backend
	// without session cookie.
	Cookie  string
	Session *ir.SessionCookie
	// trial says that the endpoint was ejected when it was chosen. Only what such a request meets decides on its return.
	trial bool
}

// Begin counts the attempt as under way, until End.
func (c Choice) Begin() { c.Endpoint.inFlight.Add(1) }

// End says that the attempt is over. Each Begin has one.
func (c Choice) End() { c.Endpoint.inFlight.Add(-1) }

// Observe tells what became of the attempt: how long the endpoint took, and whether it failed. Without it the attempt says
// nothing of the endpoint. A client that does not wait for the answer is no failure of the endpoint.
func (c Choice) Observe(took time.Duration, failed bool) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, failed)
	c.Judge(failed)
}

// Measure is the first half of Observe, for an answer that has begun and may not end for long: how long it took.
func (c Choice) Measure(took time.Duration) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, false)
}

// Judge is the other half: whether the endpoint failed.
func (c Choice) Judge(failed bool) {
	if failed {
		c.Endpoint.failed(c.trial)
		return
	}
	c.Endpoint.succeeded(c.trial)
}

// ErrNoEndpoint is why a connection, or a datagram, goes nowhere when Pick returns no endpoint.
var ErrNoEndpoint = errors.New("there is no endpoint that is ready")

// Address is the Asker for a TCP or UDP client, of which nothing is known but its address.
type Address netip.AddrPort

// Hash implements Asker.
func (Address) Hash(*nginx.Template) string { return "" }

// Cookie implements Asker.
func (Address) Cookie(string) string { return "" }

// ClientIP implements Asker.
func (a Address) ClientIP() string {
	if address := netip.AddrPort(a).Addr(); address.IsValid() {
		return address.Unmap().WithZone("").String()
	}
	return ""
}

var _ Asker = Address{}
