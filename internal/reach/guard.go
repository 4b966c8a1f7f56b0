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

// Transport is the protocol of a port.
type Transport string

// The protocols.
const (
	TCP Transport = "tcp"
	UDP Transport = "udp"
)

// Refusal is why an address is not dialled. It is no fault of whoever would have answered there, so it is neither a reason to eject
// an endpoint nor to ask it again.
type Refusal struct {
	Address netip.Addr
	Reason  Reason
}

// Error implements error.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s is not dialled: it is %s", r.Address, r.Reason.predicate())
}

// predicate is the reason as a part of a sentence.
func (r Reason) predicate() string {
	if r == Loopback || r == Unspecified || r == LinkLocal || r == Multicast {
		return "a " + string(r) + " address"
	}
	return string(r)
}

// Listening is some ports on which this process listens, or another replica, or what stands in front of them. A Host that is not valid,
// or unspecified, stands for each address of this machine.
type Listening struct {
	Transport   Transport
	Host        netip.Addr
	First, Last uint16
	// Public says that clients ask there.
	Public bool
}

// listened are the addresses that this process listens on, by port. A zero address stands for each of this machine.
type listened map[port][]netip.Addr

type port struct {
	transport Transport
	number    uint16
}

// Guard decides what is dialled. Its methods may be called from any goroutine. A nil Guard refuses what is usually refused.
type Guard struct {
	policy atomic.Pointer[Policy]
	own    atomic.Pointer[listened]
	// public has those of own where clients ask, and clients are the IDs of what may ask there as they do.
	public  atomic.Pointer[listened]
	clients sync.Map
	// names are the IDs of backends whose endpoints are the addresses of a DNS name.
	names     sync.Map
	machine   *machine
	apiServer netip.Addr

	mu sync.Mutex
	// parts are what makes up own, by who says it.
	parts map[string][]Listening
}

// NewGuard returns a guard that refuses what is usually refused, until Configure.
func NewGuard() *Guard {
	g := &Guard{machine: newMachine(MachineAddresses), apiServer: apiServer(), parts: map[string][]Listening{}}
	g.policy.Store(standard)
	g.own.Store(&listened{})
	g.public.Store(&listened{})
	return g
}

// Configure replaces the policy, for what is dialled from now on.
func (g *Guard) Configure(o Options) { g.policy.Store(NewPolicy(o)) }

// Listen says what a part of this process listens on, in place of what it said before. It returns false where that is the same.
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

// LetAsk lets what is dialled under an ID ask this process where clients do: as with ingress-nginx, a service that decides about requests
// may stand behind the host that it decides for. Requests end that come back again and again.
func (g *Guard) LetAsk(id string) { g.clients.Store(id, nil) }

// SetName says whether the endpoints of a backend are the addresses of a DNS name.
func (g *Guard) SetName(backend string, isName bool) {
	if isName {
		g.names.Store(backend, nil)
	} else {
		g.names.Delete(backend)
	}
}

// kubernetes begins the IDs of the backends of the API server's own Service.
const kubernetes = "default/kubernetes/"

// Check returns a *Refusal for an address that must not be dialled for a backend, given its ID, and nil for one that may.
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
	if hosts := (*g.public.Load())[port{over, to.Port()}]; len(hosts) > 0 && g.isClient(backend) && g.isOneOf(hosts, inner) {
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

// isOneOf says whether somebody who dials an address gets to one of the hosts. The unspecified address leads to this machine.
func (g *Guard) isOneOf(hosts []netip.Addr, a netip.Addr) bool {
	for _, host := range hosts {
		if host == a || a.IsUnspecified() || !host.IsValid() && g.machine.has(a) {
			return true
		}
	}
	return false
}

// Dial opens a TCP connection to the address of an endpoint, host:port. Where the host is a name, each address that it has is checked.
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
