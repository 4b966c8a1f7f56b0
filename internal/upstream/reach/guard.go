package reach

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Transport is the transport protocol of a port: TCP or UDP.
type Transport string

// The supported protocols.
const (
	TCP Transport = "tcp"
	UDP Transport = "udp"
)

// Refusal is the error for an address to which connections are not allowed. It must not count as a failure of the
// endpoint.
type Refusal struct {
	Address netip.Addr
	Reason  Reason
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("connections to %s are not allowed: it is %s", r.Address, r.Reason.predicate())
}

// predicate returns the reason in words, as the end of an error message after "it is".
func (r Reason) predicate() string {
	switch r {
	case Loopback, Unspecified, LinkLocal, Multicast:
		return "a " + string(r) + " address"
	case Metadata:
		return "an address of a cloud metadata service"
	case Machine:
		return "an address of this machine"
	case Denied:
		return "listed in reach_deny"
	default:
		return string(r)
	}
}

// Listening is an address with a range of ports on which this process, another replica, or a load balancer in front of
// the replicas listens. An invalid or unspecified Host means all addresses of this machine.
type Listening struct {
	Transport   Transport
	Host        netip.Addr
	First, Last uint16
	// Public is true if clients connect to this address.
	Public bool
}

// listened maps each port to the addresses on which this process listens. An invalid address means all addresses of
// this machine.
type listened map[port][]netip.Addr

type port struct {
	transport Transport
	number    uint16
}

// Guard decides to which addresses this process may connect. It is safe for concurrent use. A nil *Guard applies the
// default policy.
type Guard struct {
	policy atomic.Pointer[Policy]
	own    atomic.Pointer[listened]
	// public contains only the addresses at which this process serves clients, and own contains all addresses on which
	// it listens. clients holds the IDs of the backends whose endpoints may have the addresses in public.
	public  atomic.Pointer[listened]
	clients sync.Map
	// names holds the IDs of the backends whose endpoints come from a DNS name.
	names     sync.Map
	machine   *machine
	apiServer netip.Addr

	mu sync.Mutex
	// parts maps the name of each component of this process to the addresses on which the component listens. own
	// contains the addresses of all components.
	parts map[string][]Listening
}

// NewGuard returns a guard that applies the default policy until Configure is called.
func NewGuard() *Guard {
	g := &Guard{machine: newMachine(MachineAddresses), apiServer: apiServer(), parts: map[string][]Listening{}}
	g.policy.Store(standard)
	g.own.Store(&listened{})
	g.public.Store(&listened{})
	return g
}

// Configure replaces the policy. Existing connections are not affected.
func (g *Guard) Configure(o Options) { g.policy.Store(NewPolicy(o)) }

// Listen replaces the addresses on which one component of this process listens. part is the name of the component.
// Listen returns false if the addresses did not change.
func (g *Guard) Listen(part string, all []Listening) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.Equal(g.parts[part], all) {
		return false
	}
	g.parts[part] = slices.Clone(all)
	own, public := listened{}, listened{}
	for _, list := range g.parts {
		for _, l := range list {
			if own.add(l); l.Public {
				public.add(l)
			}
		}
	}
	g.own.Store(&own)
	g.public.Store(&public)
	return true
}

func (l listened) add(of Listening) {
	host := netip.Addr{}
	if of.Host.IsValid() && !of.Host.IsUnspecified() {
		host = Innermost(of.Host)
	}
	for number := int(of.First); number <= int(of.Last); number++ {
		at := port{of.Transport, uint16(number)}
		l[at] = append(l[at], host)
	}
}

// AllowOwnAddresses allows the backend with the given ID to have the addresses at which this process serves clients. It
// is used for external authentication: as with ingress-nginx, the authentication service may be reached through this
// controller. The caller must prevent endless loops of such requests.
func (g *Guard) AllowOwnAddresses(id string) { g.clients.Store(id, nil) }

// SetName sets whether the endpoints of a backend come from a DNS name.
func (g *Guard) SetName(backend string, isName bool) {
	if isName {
		g.names.Store(backend, nil)
	} else {
		g.names.Delete(backend)
	}
}

// kubernetes is the prefix of the backend IDs of the Service default/kubernetes. Only endpoints of this Service may
// have the address of the Kubernetes API server.
const kubernetes = "default/kubernetes/"

// Check returns a *Refusal if the backend with the given ID may not connect to an address, otherwise nil.
func (g *Guard) Check(backend string, over Transport, to netip.AddrPort) error {
	if g == nil {
		return refusal(to.Addr(), standard.Endpoint(to.Addr()))
	}
	return refusal(to.Addr(), g.check(backend, over, to))
}

func refusal(a netip.Addr, reason Reason) error {
	if reason == "" {
		return nil
	}
	return &Refusal{a, reason}
}

func (g *Guard) check(backend string, over Transport, to netip.AddrPort) Reason {
	inner := Innermost(to.Addr())
	policy := g.policy.Load()
	if hosts := (*g.public.Load())[port{over, to.Port()}]; len(hosts) > 0 && g.isClient(backend) &&
		g.isOneOf(hosts, inner) {
		return policy.Endpoint(to.Addr())
	}
	if hosts := (*g.own.Load())[port{over, to.Port()}]; len(hosts) > 0 && g.isOneOf(hosts, inner) {
		return Own
	}
	reason := policy.Endpoint(to.Addr())
	isName := policy.differs && g.isName(backend)
	if isName {
		reason = refused(policy.names, to.Addr())
	}
	if reason == "" && inner == g.apiServer && !strings.HasPrefix(backend, kubernetes) && !(isName && policy.anyName) {
		return APIServer
	}
	return reason
}

func (g *Guard) isClient(id string) bool {
	_, ok := g.clients.Load(id)
	return ok
}

func (g *Guard) isName(backend string) bool {
	_, ok := g.names.Load(backend)
	return ok
}

// isOneOf reports whether a connection to the address a would reach one of the hosts. If a is unspecified (0.0.0.0 or
// ::), it returns true, because such a connection reaches this machine.
func (g *Guard) isOneOf(hosts []netip.Addr, a netip.Addr) bool {
	for _, host := range hosts {
		if host == a || a.IsUnspecified() || !host.IsValid() && g.machine.has(a) {
			return true
		}
	}
	return false
}

// Dial opens a TCP connection to an address of the form host:port, if Check allows it. If the host is a name, each IP
// address that it resolves to is checked.
func (g *Guard) Dial(ctx context.Context, d net.Dialer, backend, address string) (net.Conn, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		d.ControlContext = func(_ context.Context, _, found string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(found)
			if err != nil {
				return err
			}
			return g.Check(backend, TCP, to)
		}
		return d.DialContext(ctx, "tcp", address)
	}
	if err := g.Check(backend, TCP, to); err != nil {
		return nil, err
	}
	conn, err := d.DialTCP(ctx, "tcp", netip.AddrPort{}, to)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
