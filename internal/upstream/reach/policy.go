// Package reach decides to which addresses requests, streams and health checks may connect. The author of an
// EndpointSlice, or the owner of a DNS name, must not reach addresses that only this machine can reach, nor addresses
// on which this process listens.
//
// The decision is made in one function, Guard.Check, for the final address after each lookup. Every dialer for client
// traffic calls it.
package reach

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Reason is the reason why an address is not allowed. It is also the value of a metric label.
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

// rule allows or rejects the addresses of a network. An empty reason allows them.
type rule struct {
	network netip.Prefix
	reason  Reason
}

// usual are the networks that are rejected by default. Private networks are not among them, because Services are there.
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
	// The metadata services of clouds, which give secrets to every machine and every pod.
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.2/32"), Metadata},
	{netip.MustParsePrefix("169.254.170.23/32"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::254/128"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::23/128"), Metadata},
	{netip.MustParsePrefix("fd20:ce::254/128"), Metadata},
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata},
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},
}

// Policy defines which networks may be reached. The narrowest network that contains an address decides. For equal
// networks Deny takes precedence over Allow, and Allow over the defaults. So if Allow contains a wide network,
// narrower networks in it that are rejected by default stay rejected; Allow must contain them, too. A Policy is
// immutable.
type Policy struct {
	// endpoints are the rules for endpoints, and names the rules for addresses of DNS names. The narrowest networks
	// come first.
	endpoints, names []rule
	// anyName is copied from the options. differs means that names and endpoints have different rules.
	anyName, differs bool
}

// Options are the administrator's settings.
type Options struct {
	// Allow allows networks that are rejected by default. It applies only to endpoints, because anyone can own a DNS
	// name.
	Allow []netip.Prefix
	// Deny rejects networks.
	Deny []netip.Prefix
	// AnyName allows DNS names to have addresses that are rejected by default.
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

// ordered joins lists of rules, narrowest networks first. For equal networks the rule of the first list comes first.
func ordered(lists ...[]rule) []rule {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b rule) int { return b.network.Bits() - a.network.Bits() })
	return all
}

// Endpoint returns the reason why an endpoint may not have an address, or "" if it may.
func (p *Policy) Endpoint(a netip.Addr) Reason { return refused(p.endpoints, a) }

// Name returns the reason why a DNS name may not have an address, whatever the port, or "" if it may. It applies the
// rules without AnyName. They are stricter than the rules for endpoints: a name must not resolve to an address of this
// machine. own are the addresses of this machine.
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

// apiServer returns the address of the API server, which Kubernetes passes to each pod. Outside of a pod the result is
// invalid.
func apiServer() netip.Addr {
	a, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil {
		return netip.Addr{}
	}
	return Innermost(a)
}

// refused applies the rules to an address, and to the IPv4 address that is embedded in it.
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

// Networks whose IPv6 addresses embed the IPv4 address to which packets may be delivered.
var (
	translated      = netip.MustParsePrefix("64:ff9b::/96")
	translatedHere  = netip.MustParsePrefix("64:ff9b:1::/48")
	translatedPlain = netip.MustParsePrefix("::ffff:0:0:0/96")
	compatible      = netip.MustParsePrefix("::/96")
	sixToFour       = netip.MustParsePrefix("2002::/16")
	teredo          = netip.MustParsePrefix("2001::/32")
)

// Innermost returns the IPv4 address that is embedded in an IPv6 address, or the address itself.
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

// ParseNetwork parses a network such as 10.0.0.0/8, or a single address.
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
