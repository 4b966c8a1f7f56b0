package resolver

import "net/netip"

// SetFiles makes the resolver read other files than those of the system. It goes before Configure.
func (r *Resolver) SetFiles(resolvConf, hosts string) { r.files = systemFiles{resolvConf, hosts} }

// SetOwn replaces the addresses of this machine.
func (r *Resolver) SetOwn(own func() ([]netip.Addr, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = own
}

// Known returns how many names there are, and how many of them wait.
func (r *Resolver) Known() (names, queued int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.names), r.queue.Len()
}

// Share is how many names of one namespace are looked up at the same time.
const Share = share
