package filter

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// sourceRanges accepts or rejects clients by their IP address.
type sourceRanges struct {
	// allow and deny are the allowed and denied client networks. If allow is nil, all networks that are not denied are
	// allowed.
	allow, deny *networks
}

func newSourceRanges(of ir.SourceRanges) (Filter, error) {
	h := &sourceRanges{}
	for _, list := range []struct {
		from []string
		to   **networks
	}{{of.Allow, &h.allow}, {of.Deny, &h.deny}} {
		if list.from == nil {
			continue
		}
		var err error
		if *list.to, err = newNetworks(list.from); err != nil {
			return nil, err
		}
	}
	return h, nil
}

var errSource = errors.New("clients with this address are not allowed")

// Apply rejects clients that are denied or not allowed with status 403. A client without an IP address, which is
// connected over a Unix socket, is always rejected.
func (h *sourceRanges) Apply(x *exchange.Exchange) (bool, error) {
	ip, err := netip.ParseAddr(x.Client().IP)
	if err != nil || h.deny.has(ip) || h.allow != nil && !h.allow.has(ip) {
		return false, exchange.Fail(http.StatusForbidden, errSource)
	}
	return false, nil
}

// networks is a set of IP networks. A look-up takes one step per distinct prefix length, regardless of the number of
// networks.
type networks struct {
	all map[netip.Prefix]struct{}
	// v4 and v6 hold the distinct prefix lengths of the IPv4 and IPv6 networks.
	v4, v6 []int
}

func newNetworks(list []string) (*networks, error) {
	n := &networks{all: make(map[netip.Prefix]struct{}, len(list))}
	for _, text := range list {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a network: %w", text, err)
		}
		n.all[prefix.Masked()] = struct{}{}
		lengths := &n.v6
		if prefix.Addr().Is4() {
			lengths = &n.v4
		}
		if !slices.Contains(*lengths, prefix.Bits()) {
			*lengths = append(*lengths, prefix.Bits())
		}
	}
	return n, nil
}

// has reports whether an IP address belongs to one of the networks. It returns false if n is nil.
func (n *networks) has(ip netip.Addr) bool {
	if n == nil {
		return false
	}
	ip = ip.Unmap().WithZone("")
	lengths := n.v6
	if ip.Is4() {
		lengths = n.v4
	}
	for _, bits := range lengths {
		prefix, err := ip.Prefix(bits)
		if _, ok := n.all[prefix]; err == nil && ok {
			return true
		}
	}
	return false
}
