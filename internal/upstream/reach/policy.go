// Package reach decides to which addresses this process may connect for requests, TCP and UDP connections, and health
// checks. The author of an EndpointSlice, or the owner of a DNS name, must not be able to make this process connect to
// its own ports, or to addresses that other machines cannot reach.
//
// A single function, Guard.Check, makes all decisions. It is called with an IP address, after any DNS lookup, and all
// code that opens connections for clients calls it.
package reach

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Reason says why connections to an address are not allowed. It is also used as a metric label.
type Reason string

// The possible reasons.
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

// rule allows or rejects the addresses of a network. If reason is empty, they are allowed.
type rule struct {
	network netip.Prefix
	reason  Reason
}

// usual lists the networks that are rejected by default. Private networks are allowed, because the pods of Services use
// them.
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
	// The metadata services of cloud providers, which give credentials to every machine and pod.
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.2/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.23/32"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::254/128"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::23/128"), Metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), Metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},
}

// Policy defines to which networks connections are allowed. If several networks contain an address, the rule of the
// narrowest network applies. For the same network, Options.Deny takes precedence over Options.Allow, which takes
// precedence over the default rules. For example, if a wide network is allowed, a narrower network in it that is
// rejected by default is still rejected, unless Allow also contains the narrower network. A Policy is immutable.
type Policy struct {
	// endpoints are the rules for endpoints. names are the rules for endpoints whose addresses come from a DNS name.
	// The narrowest networks come first.
	endpoints, names []rule
	// anyName is a copy of Options.AnyName. differs is true if the rules in names may differ from the rules in
	// endpoints.
	anyName, differs bool
}

// Options are the settings of a Policy that the administrator can change.
type Options struct {
	// Allow contains networks that are allowed although they are rejected by default. It does not apply to endpoints
	// whose addresses come from a DNS name, because the owner of a DNS name can point it to any address.
	Allow []netip.Prefix
	// Deny contains networks that are rejected, in addition to the networks that are rejected by default.
	Deny []netip.Prefix
	// AnyName allows DNS names to resolve to addresses that are rejected by default. Deny still applies.
	AnyName bool
}

// NewPolicy returns the policy for the options.
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

// ordered concatenates lists of rules and sorts the rules, narrowest networks first. For the same network, the rule
// from the earlier list comes first.
func ordered(lists ...[]rule) []rule {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b rule) int { return b.network.Bits() - a.network.Bits() })
	return all
}

// Endpoint returns the reason why connections to an endpoint with the address a are not allowed, or "" if they are
// allowed.
func (p *Policy) Endpoint(a netip.Addr) Reason { return refused(p.endpoints, a) }

// Name returns the reason why a DNS name must not resolve to the address a, or "" if it may resolve to a. own contains
// the addresses of this machine. Name applies the default rules. It also rejects the addresses of this machine and of
// the Kubernetes API server, for all ports.
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

// apiServer returns the IP address of the Kubernetes API server from the environment variable that each pod gets.
// Outside of a pod, the result is not valid.
func apiServer() netip.Addr {
	a, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil {
		return netip.Addr{}
	}
	return Innermost(a)
}

// refused returns the reason of the rule that rejects an address, or "" if the address is allowed. It also applies the
// rules to the IPv4 address that is embedded in an IPv6 address.
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

// The networks of IPv6 addresses in which an IPv4 address is embedded. Packets to such an address may be delivered to
// the IPv4 address.
var (
	translated      = netip.MustParsePrefix("64:ff9b::/96")
	translatedHere  = netip.MustParsePrefix("64:ff9b:1::/48")
	translatedPlain = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible      = netip.MustParsePrefix("::/96")
	sixToFour       = netip.MustParsePrefix("2002::/16")
	teredo          = netip.MustParsePrefix("2001::/32")
)

// Innermost returns the IPv4 address that is embedded in an IPv6 address. It returns the address itself if it contains
// no other address.
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

// ParseNetwork parses a network such as 10.0.0.0/8, or a single IP address.
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
