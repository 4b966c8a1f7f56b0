package network

import (
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace that is connected to the cluster's namespace with a veth pair. After Close, it
// exists until its last process ends.
type Namespace struct {
	handle netns.NsHandle
	// link is the name of the end in the cluster's namespace.
	link string
}

// NewNamespace creates the namespace of a node or a pod on the bridge, with an address. name is the name of its link.
// It must be unique and have at most 15 bytes.
func NewNamespace(name, ip string) (*Namespace, error) {
	n, err := newNamespace(name)
	if err != nil {
		return nil, err
	}
	if err := n.connectBridge(ip); err != nil {
		n.Close()
		return nil, fmt.Errorf("connecting %s, %s, to the bridge: %w", name, ip, err)
	}
	return n, nil
}

func (n *Namespace) connectBridge(ip string) error {
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return err
	}
	link, err := netlink.LinkByName(n.link)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return err
	}
	return n.Do(func() error {
		if err := addAddress("eth0", ip+"/16"); err != nil {
			return err
		}
		return addGateway("", ControlPlaneIP)
	})
}

// NewServices creates the namespace for all ClusterIPs, and for the addresses of load balancers that Attract adds.
func NewServices() (*Namespace, error) {
	n, err := newNamespace("svc0")
	if err != nil {
		return nil, err
	}
	if err := n.connectServices(); err != nil {
		n.Close()
		return nil, fmt.Errorf("connecting the service namespace: %w", err)
	}
	return n, nil
}

func (n *Namespace) connectServices() error {
	if err := addAddress(n.link, serviceNear+"/30"); err != nil {
		return err
	}
	err := n.Do(func() error {
		if err := addAddress("eth0", serviceFar+"/30"); err != nil {
			return err
		}
		for _, cidr := range []string{ServiceCIDR, LoadBalancerCIDR} {
			if err := addLocalRoute(cidr, unix.RT_TABLE_LOCAL); err != nil {
				return err
			}
		}
		return addGateway("", serviceNear)
	})
	if err != nil {
		return err
	}
	return addGateway(ServiceCIDR, serviceFar)
}

// Attract routes an address of a load balancer to the namespace of the Services.
func Attract(ip string) error { return addGateway(ip+"/32", serviceFar) }

// Release undoes Attract.
func Release(ip string) error {
	address, err := netlink.ParseIPNet(ip + "/32")
	if err != nil {
		return err
	}
	return netlink.RouteDel(&netlink.Route{Dst: address})
}

// newNamespace creates a namespace with lo and eth0, both up. link is the name of the other end of eth0.
func newNamespace(link string) (*Namespace, error) {
	n := &Namespace{link: link}
	if err := inThread(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, n.remember); err != nil {
		return nil, fmt.Errorf("making a namespace: %w", err)
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = link
	pair := &netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(n.handle)}
	if err := netlink.LinkAdd(pair); err != nil {
		n.handle.Close()
		return nil, fmt.Errorf("adding the pair %s: %w", link, err)
	}
	if err := bringUp(link); err != nil {
		n.Close()
		return nil, err
	}
	err := n.Do(func() error {
		if err := bringUp("lo"); err != nil {
			return err
		}
		return bringUp("eth0")
	})
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Namespace) remember() (err error) {
	n.handle, err = netns.Get()
	return err
}

// Do runs f in the namespace. Sockets that f opens belong to the namespace.
func (n *Namespace) Do(f func() error) error {
	return inThread(func() error { return netns.Set(n.handle) }, f)
}

// File returns the namespace as a file for a child process. The caller closes it.
func (n *Namespace) File() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(n.handle), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), n.link), nil
}

// Close removes the connection to the cluster.
func (n *Namespace) Close() {
	if link, err := netlink.LinkByName(n.link); err == nil {
		_ = netlink.LinkDel(link)
	}
	_ = n.handle.Close()
}

// inThread runs functions, up to the first error, in a thread that ends afterwards. No other goroutine may use a thread
// that has changed its namespace.
func inThread(functions ...func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		for _, f := range functions {
			if err := f(); err != nil {
				result <- err
				return
			}
		}
		result <- nil
	}()
	return <-result
}
