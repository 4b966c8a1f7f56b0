// Package network creates the network of a cluster in one network namespace with netlink:
//
//	cni0   10.244.0.0/16   a bridge; each node and each pod is a namespace at the other end of a veth pair
//	svc0   10.96.0.0/16    a link to the namespace of the ClusterIPs, in which package services listens
//	lo     172.18.0.0/16   load balancers; a controller outside of pods that listens on all addresses has these
//
// Pods do not have loopback addresses, which would be simpler, because an EndpointSlice must not contain them.
package network

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// The addresses are the same in every cluster, because each cluster has its own network.
const (
	// ServiceCIDR is the range of ClusterIPs.
	ServiceCIDR = "10.96.0.0/16"
	// LoadBalancerCIDR is the range of addresses for Services of type LoadBalancer.
	LoadBalancerCIDR = "172.18.0.0/16"
	// ControlPlaneIP is the address of the API server, and of the bridge, which is the gateway of nodes and pods. Nodes
	// have the next addresses, up to 10.244.0.251, and pods have the rest of the /16.
	ControlPlaneIP = "10.244.0.1"

	bridgeName = "cni0"
	// The two ends of svc0 have link-local addresses (RFC 3927), which are used for nothing else.
	serviceNear = "169.254.77.1"
	serviceFar  = "169.254.77.2"
)

// bridgeHardware is a locally administered MAC address, which the 2 indicates. It ends with the address of the control
// plane.
var bridgeHardware = net.HardwareAddr{2, 0, 10, 244, 0, 1}

// MaxNodes is the maximum number of nodes in 10.244.0.0/24.
const MaxNodes = 250

// NodeAddress returns the address of a node. Nodes are counted from 0.
func NodeAddress(i int) string { return fmt.Sprintf("10.244.0.%d", i+2) }

// SetUp creates the network in the namespace of this process, which must be new.
func SetUp() error {
	if err := bringUp("lo"); err != nil {
		return err
	}
	bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
	bridge.Name = bridgeName
	// Without a fixed address, the bridge has the lowest address of its ports. That address changes with the pods, and
	// nodes would use the old one for half a minute.
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
	// Traffic from nodes and pods to ClusterIPs is forwarded here.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return fmt.Errorf("turning forwarding on: %w", err)
	}
	// Routes in the table local take precedence over all others, but it must be possible to route single addresses
	// elsewhere.
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

// addLocalRoute makes all addresses of cidr local in this namespace.
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

// addGateway routes cidr through gateway. If cidr is empty, it routes all traffic.
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
