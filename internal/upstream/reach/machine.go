package reach

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// lifetime is how long the addresses of this machine are cached. Listing them takes a system call, and they rarely
// change.
const lifetime = 5 * time.Second

// MachineAddresses returns the addresses of the network interfaces. In a pod without the host network, these are only
// the addresses of the pod.
func MachineAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr().WithZone("").Unmap())
		}
	}
	return own, nil
}

// machine caches the addresses of this machine.
type machine struct {
	list func() ([]netip.Addr, error)

	mu    sync.Mutex
	known map[netip.Addr]bool
	until time.Time
}

func newMachine(list func() ([]netip.Addr, error)) *machine { return &machine{list: list} }

// addresses returns the set of this machine's addresses. If they cannot be listed, it returns the set that was listed
// before, or an error if there is no such set.
func (m *machine) addresses() (map[netip.Addr]bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.known != nil && now.Before(m.until) {
		return m.known, nil
	}
	all, err := m.list()
	if err != nil && m.known == nil {
		return nil, err
	}
	m.until = now.Add(lifetime)
	if err != nil {
		return m.known, nil
	}
	m.known = make(map[netip.Addr]bool, len(all))
	for _, a := range all {
		m.known[a] = true
	}
	return m.known, nil
}

// has reports whether an address belongs to this machine. If the machine's addresses cannot be listed, it returns true
// to be safe.
func (m *machine) has(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	known, err := m.addresses()
	return err != nil || known[a]
}
