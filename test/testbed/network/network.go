// Package network makes the network of a cluster in one network namespace, by netlink:
//
//	cni0   10.244.0.0/16   a bridge; each node and each pod is a namespace at the other end of a veth pair
//	svc0   10.96.0.0/16    the way to a namespace of the ClusterIPs, where package services listens
//	lo     172.18.0.0/16   the load balancers: a controller outside of pods that listens on all addresses has these
//
// Pods cannot have loopback addresses, which would be simpler: no EndpointSlice may contain one.
package network

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses are the same in every cluster, for each has a network of its own.
const (
	// ServiceCIDR is where ClusterIPs come from.
	ServiceCIDR = "10.96.0.0/16"
	// LoadBalancerCIDR has the addresses of Services of type LoadBalancer.
	LoadBalancerCIDR = "172.18.0.0/16"
	// ControlPlaneIP is that of the API server, and of the bridge, which is the gateway of nodes and pods. Nodes have
	// the next ones, up to 10.244.0.251, and pods have the rest of the /16.
	ControlPlaneIP = "10.244.0.1"

	bridgeName = "cni0"
	// The two ends of svc0 have link-local addresses (RFC 3927), which nothing else here has.
	serviceNear = "169.254.77.1"
	serviceFar  = "169.254.77.2"
)

// bridgeHardware is an address that is administered here, as the 2 says, with the one of the control plane behind it.
var bridgeHardware = net.HardwareAddr{2, 0, 10, 244, 0, 1}

// MaxNodes is how many nodes have room in 10.244.0.0/24.
const MaxNodes = 250

// NodeAddress returns a node's address; the first node is number 0.
func NodeAddress(i int) string { return fmt.Sprintf("10.244.0.%d", i+2) }

// SetUp makes the network in the namespace of this process, which must be a new one.
func SetUp() error {
	if err := bringUp("lo"); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = bridgeName
	// Else it has the lowest one of its ports, which changes with the pods, and for half a minute nodes send to the old
	// one.
	bridge.HardwareAddr = bridgeHardware
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("adding the bridge: %w", err)
	}
	if err := addAddress(bridgeName, ControlPlaneIP+"/16"); err != nil {
		return err
	}
	if err := bringUp(bridgeName); err != nil {
		return err
	}
	// The way from nodes and pods to ClusterIPs leads through here.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("turning forwarding on: %w", err)
	}
	// Routes of the table local win over all others, and single addresses must be able to lead elsewhere.
	return addLocalRoute(LoadBalancerCIDR, unix.RT_TABLE_MAIN)
}

func bringUp(name string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("bringing %s up: %w", name, err)
	}
	return nil
}

func addAddress(name, cidr string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	address, err := netlink.ParseAddr(cidr)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, address); err != nil {
		return fmt.Errorf("adding %s to %s: %w", cidr, name, err)
	}
	return nil
}

// addLocalRoute makes all addresses of cidr this namespace's own.
func addLocalRoute(cidr string, table int) error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	_, destination, err := net.ParseCIDR(cidr)
	if err != nil {
		return err
	}
	route := &netlink.Route{
		LinkIndex: lo.Attrs().Index, Dst: destination,
		Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST, Table: table,
	}
	if err := netlink.RouteAdd(route); err != nil {
		return fmt.Errorf("adding local %s: %w", cidr, err)
	}
	return nil
}

// addGateway routes cidr through gateway; without a cidr, everything.
func addGateway(cidr, gateway string) error {
	route := &netlink.Route{Gw: net.ParseIP(gateway)}
	if cidr != "" {
		_, destination, err := net.ParseCIDR(cidr)
		if err != nil {
			return err
		}
		route.Dst = destination
	}
	if err := netlink.RouteReplace(route); err != nil {
		return fmt.Errorf("routing %q through %s: %w", cidr, gateway, err)
	}
	return nil
}
