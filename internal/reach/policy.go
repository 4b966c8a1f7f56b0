// Package reach decides which addresses are dialled for requests, streams and health checks: whoever writes an EndpointSlice, or owns
// a DNS name, must not get at what only this machine reaches, nor at what this process listens on.
//
// One function decides, Guard.Check, on the address that is dialled, after every lookup. Every dialer of the data path asks it.
package reach

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Reason is why an address is refused. It is a label of a metric, too.
type Reason string

// The reasons.
const (
	Loopback    Reason = "loopback"
	Unspecified Reason = "unspecified"
	LinkLocal   Reason = "link-local"
	Multicast   Reason = "multicast"
	Metadata    Reason = "metadata of the cloud"
	Machine     Reason = "of this machine"
	APIServer   Reason = "the API server"
	Own         Reason = "an address of the controller itself"
	Denied      Reason = "in reach_deny"
)

// rule is what is said of a network. An empty reason allows it.
type rule struct {
	network netip.Prefix
	reason  Reason
}

// usual are the networks that no endpoint has. Private networks are not among them: Services are there.
var usual = []rule{
	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("0.0.0.0/8"), Unspecified},
	{netip.MustParsePrefix("::/128"), Unspecified},
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("255.255.255.255/32"), Multicast},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
	// Where clouds answer every machine, and every pod, with its own secrets.
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.2/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.23/32"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::254/128"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::23/128"), Metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), Metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},
}

// Policy says which networks may be reached. Of the networks that an address is in, the narrowest counts; of equal ones Deny counts
// before Allow, and Allow before what is usual. So a wide network opens nothing that is usually closed: that has to be named. A Policy
// is immutable.
type Policy struct {
	// endpoints are the rules for endpoints, names those for addresses of DNS names; the narrowest network is the first.
	endpoints, names []rule
	// anyName is that of the options, and differs says that names and endpoints have different rules.
	anyName, differs bool
}

// Options are what administrators say.
type Options struct {
	// Allow opens networks that are usually closed. It counts for endpoints only: who owns a DNS name may be anybody.
	Allow []netip.Prefix
	// Deny closes networks.
	Deny []netip.Prefix
	// AnyName opens for names what is usually closed.
	AnyName bool
}

// NewPolicy reads the options.
func NewPolicy(o Options) *Policy {
	denied, allowed := rules(o.Deny, Denied), rules(o.Allow, "")
	p := &Policy{
		endpoints: ordered(denied, allowed, usual), names: ordered(denied, usual),
		anyName: o.AnyName, differs: len(allowed) > 0 || o.AnyName,
	}
	if o.AnyName {
		p.names = ordered(denied)
	}
	return p
}

func rules(networks []netip.Prefix, reason Reason) []rule {
	all := make([]rule, 0, len(networks))
	for _, n := range networks {
		all = append(all, rule{n.Masked(), reason})
	}
	return all
}

// ordered joins lists of rules, of which the first counts among equal networks.
func ordered(lists ...[]rule) []rule {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b rule) int { return b.network.Bits() - a.network.Bits() })
	return all
}

// Endpoint says why an address may not be that of an endpoint; it is empty when it may.
func (p *Policy) Endpoint(a netip.Addr) Reason { return refused(p.endpoints, a) }

// Name says why a DNS name may not lead to an address, whatever its port, where AnyName does not say otherwise; it is empty when it may.
// That is stricter than what counts for endpoints: no name leads to this machine, whose addresses are own.
func Name(a netip.Addr, own []netip.Addr) Reason {
	inner := Innermost(a)
	switch reason := refused(standard.names, a); {
	case reason != "":
		return reason
	case slices.Contains(own, inner):
		return Machine
	case inner == apiServer():
		return APIServer
	}
	return ""
}

var standard = NewPolicy(Options{})

// apiServer is the address that Kubernetes gives each pod for it; outside of a pod it is not valid.
func apiServer() netip.Addr {
	a, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil {
		return netip.Addr{}
	}
	return Innermost(a)
}

// refused judges an address, and the one that it has inside.
func refused(all []rule, a netip.Addr) Reason {
	a = a.WithZone("").Unmap()
	inner := Innermost(a)
	if reason := first(all, inner); reason != "" || inner == a {
		return reason
	}
	return first(all, a)
}

func first(all []rule, a netip.Addr) Reason {
	for i := range all {
		if all[i].network.Contains(a) {
			return all[i].reason
		}
	}
	return ""
}

// Networks whose addresses have an IPv4 address inside, which is where a packet may end.
var (
	translated      = netip.MustParsePrefix("64:ff9b::/96")
	translatedHere  = netip.MustParsePrefix("64:ff9b:1::/48")
	translatedPlain = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible      = netip.MustParsePrefix("::/96")
	sixToFour       = netip.MustParsePrefix("2002::/16")
	teredo          = netip.MustParsePrefix("2001::/32")
)

// Innermost returns the IPv4 address that an IPv6 one stands for, or the address itself.
func Innermost(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if !a.Is6() || a.IsUnspecified() || a.IsLoopback() {
		return a
	}
	bytes := a.As16()
	switch {
	case translated.Contains(a), translatedHere.Contains(a), translatedPlain.Contains(a), compatible.Contains(a):
		return netip.AddrFrom4([4]byte(bytes[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(bytes[2:]))
	case teredo.Contains(a):
		return netip.AddrFrom4([4]byte{^bytes[12], ^bytes[13], ^bytes[14], ^bytes[15]})
	}
	return a
}

// ParseNetwork reads a network such as 10.0.0.0/8, or one address.
func ParseNetwork(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	n, err := netip.ParsePrefix(text)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", text)
	}
	if mapped := 96; n.Addr().Is4In6() && n.Bits() >= mapped {
		n = netip.PrefixFrom(n.Addr().Unmap(), n.Bits()-mapped)
	}
	return n.Masked(), nil
}
