package balancer

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Endpoint is one address of a backend with its statistics and health. The same value is used while the address is in
// the list, and for a while afterwards.
type Endpoint struct {
	address string
	backend *Backend

	inFlight atomic.Int32
	// round is the round of the last list that contained the endpoint. The mutex of the Backend guards it.
	round   uint32
	latency latency
	health  health
	// since is the time when the endpoint joined others, at which its slow start begins. Zero means no slow start.
	since atomic.Int64
	// listed means that the endpoint is in the current list.
	listed atomic.Bool
	// goneAt is the time when the endpoint left the list. The mutex of the Backend guards it.
	goneAt int64
}

// Address returns the address as host:port.
func (e *Endpoint) Address() string { return e.address }

// Listed reports whether the endpoint is in the current list of its backend.
func (e *Endpoint) Listed() bool { return e.listed.Load() }

// InFlight returns the number of requests in flight.
func (e *Endpoint) InFlight() int { return int(e.inFlight.Load()) }

// Choice is the endpoint for one attempt.
type Choice struct {
	Endpoint *Endpoint
	// Cookie is the value of the session cookie to set; if empty, no cookie is set. Session holds its settings. It is
	// nil for a backend without session cookies.
	Cookie  string
	Session *ir.SessionCookie
	// trial means that the endpoint was ejected when it was chosen. Only the result of such a request decides whether
	// the endpoint returns.
	trial bool
}

// Begin counts the attempt as in flight until End is called.
func (c Choice) Begin() { c.Endpoint.inFlight.Add(1) }

// End ends the attempt. It must be called once for each Begin.
func (c Choice) End() { c.Endpoint.inFlight.Add(-1) }

// Observe records the result of the attempt: how long the endpoint took, and whether it failed. It need not be called.
// If the client does not wait for the response, this is not a failure of the endpoint.
func (c Choice) Observe(took time.Duration, failed bool) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, failed)
	c.Judge(failed)
}

// Measure records only the latency. It is for a response that has started and may take long to end; Judge must follow.
func (c Choice) Measure(took time.Duration) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, false)
}

// Judge records only whether the endpoint failed.
func (c Choice) Judge(failed bool) {
	if failed {
		c.Endpoint.failed(c.trial)
		return
	}
	c.Endpoint.succeeded(c.trial)
}

// ErrNoEndpoint is the error for a connection or datagram if Pick returns no endpoint.
var ErrNoEndpoint = errors.New("no endpoint is ready")

// Address is the ClientInfo for a TCP or UDP client, of which only the address is known.
type Address netip.AddrPort

// Hash implements ClientInfo.
func (Address) Hash(*nginx.Template) string { return "" }

// Cookie implements ClientInfo.
func (Address) Cookie(string) string { return "" }

// ClientIP implements ClientInfo.
func (a Address) ClientIP() string {
	if address := netip.AddrPort(a).Addr(); address.IsValid() {
		return address.Unmap().WithZone("").String()
	}
	return ""
}

var _ ClientInfo = Address{}
