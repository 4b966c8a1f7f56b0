package reach

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

// lifetime is for how long the list of this machine's addresses is believed. It costs a call for each, and hardly ever changes.
const lifetime = 5 * time.Second

// MachineAddresses returns the addresses of the network interfaces: the pod's own, when this is one.
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

// machine keeps them for a while.
type machine struct {
	list func() ([]netip.Addr, error)

	mu    sync.Mutex
	known map[netip.Addr]bool
	until time.Time
}

func newMachine(list func() ([]netip.Addr, error)) *machine { return &machine{list: list} }

// addresses returns them. When they cannot be listed, those of the last time count.
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

// has says whether an address is one of this machine. Not to know is no reason to go there.
func (m *machine) has(a netip.Addr) bool {
	if a.IsLoopback() {
		return true
	}
	known, err := m.addresses()
	return err != nil || known[a]
}
