package resolver

import "net/netip"

// SetFiles makes the resolver read other files than the system's. It must be called before Configure.
func (r *Resolver) SetFiles(resolvConf, hosts string) { r.files = systemFiles{resolvConf, hosts} }

// SetOwn replaces the addresses of this machine.
func (r *Resolver) SetOwn(own func() ([]netip.Addr, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = own
}

// Known returns the number of names, and how many of them wait.
func (r *Resolver) Known() (names, queued int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.names.Len(), r.queue.Len()
}

// Share is the maximum number of concurrent look-ups for one namespace.
const Share = maxPerNamespace
