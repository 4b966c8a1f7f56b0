package balancer

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Endpoint is one address of a backend, with its statistics and health. The same *Endpoint is used for an address while
// the address is in the backend's list of endpoints, and for a while after it was removed from the list.
type Endpoint struct {
	address string
	backend *Backend

	inFlight atomic.Int32
	// round is the value of Backend.round when the endpoint was last in the list. It is guarded by Backend.mu.
	round   uint32
	latency latency
	health  health
	// since is the time when the endpoint was added and its slow start began. Zero means that it has no slow start.
	since atomic.Int64
	// listed reports whether the endpoint is in the current list of endpoints.
	listed atomic.Bool
	// goneAt is the time when the endpoint was removed from the list. It is guarded by Backend.mu.
	goneAt int64
}

// Address returns the endpoint's address in the form host:port.
func (e *Endpoint) Address() string { return e.address }

// Listed reports whether the endpoint is still in the list of its backend's endpoints.
func (e *Endpoint) Listed() bool { return e.listed.Load() }

// InFlight returns the number of requests that the endpoint is handling now.
func (e *Endpoint) InFlight() int { return int(e.inFlight.Load()) }

// Failures returns the number of requests to the endpoint that failed in a row. It is zero after a successful request.
func (e *Endpoint) Failures() int { return int(e.health.failures.Load()) }

// Choice is the endpoint that was chosen for one attempt to send a request.
type Choice struct {
	Endpoint *Endpoint
	// Cookie is the value of the session cookie to send to the client, or "" if no cookie must be sent. Session holds
	// the other settings of the cookie. It is nil if the backend uses no session cookies.
	Cookie  string
	Session *ir.SessionCookie
	// trial is true if the endpoint was ejected when it was chosen. While an endpoint is ejected, only the results of
	// such requests decide whether it is used again.
	trial bool
}

// Begin counts the attempt as a request in flight until End is called.
func (c Choice) Begin() { c.Endpoint.inFlight.Add(1) }

// End stops counting the attempt as a request in flight. It must be called once for each call of Begin.
func (c Choice) End() { c.Endpoint.inFlight.Add(-1) }

// Observe records the result of the attempt: the response time, and whether the endpoint failed. An attempt without a
// result need not be recorded. If the client closes the connection before the response, the endpoint has not failed.
func (c Choice) Observe(took time.Duration, failed bool) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, failed)
	c.Judge(failed)
}

// Measure records only the response time. It is called when a response has started that may take long to end. When the
// response has ended, Judge must be called to record whether the endpoint failed.
func (c Choice) Measure(took time.Duration) {
	c.Endpoint.latency.observe(c.Endpoint.backend.now(), took, false)
}

// Judge records only whether the endpoint failed, because Measure has already recorded the response time.
func (c Choice) Judge(failed bool) {
	if failed {
		c.Endpoint.failed(c.trial)
		return
	}
	c.Endpoint.succeeded(c.trial)
}

// ErrNoEndpoint is the error that is reported for a TCP connection or a datagram for which Pick found no endpoint.
var ErrNoEndpoint = errors.New("no endpoint is ready")

// Address implements ClientInfo for a client of a TCP or UDP port. Only the address of such a client is known.
type Address netip.AddrPort

// Hash implements ClientInfo. It always returns "".
func (Address) Hash(*nginx.Template) string { return "" }

// Cookie implements ClientInfo. It always returns "".
func (Address) Cookie(string) string { return "" }

// ClientIP implements ClientInfo. It returns the IP address without the port and the zone.
func (a Address) ClientIP() string {
	if address := netip.AddrPort(a).Addr(); address.IsValid() {
		return address.Unmap().WithZone("").String()
	}
	return ""
}

var _ ClientInfo = Address{}
