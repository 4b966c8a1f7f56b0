package network

import (
	"fmt"
	"net/netip"
	"sync"
)

// Pool assigns addresses. A freed address is reused as late as possible, because clients may still be connected to its
// last owner. It is safe for concurrent use.
type Pool struct {
	first, last netip.Addr

	mu   sync.Mutex
	next netip.Addr
	used map[netip.Addr]bool
}

// NewPool returns a pool of the addresses from first to last, inclusive.
func NewPool(first, last string) *Pool {
	p := &Pool{first: netip.MustParseAddr(first), last: netip.MustParseAddr(last), used: map[netip.Addr]bool{}}
	p.next = p.first
	return p
}

// NewPodPool returns the pool of addresses for pods.
func NewPodPool() *Pool { return NewPool("10.244.1.1", "10.244.255.254") }

// Take returns a free address. It returns an error if no address is free.
func (p *Pool) Take() (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.next
	for {
		candidate := p.next
		p.advance()
		if !p.used[candidate] {
			p.used[candidate] = true
			return candidate.String(), nil
		}
		if p.next == start {
			return "", fmt.Errorf("no free address between %s and %s", p.first, p.last)
		}
	}
}

// Claim takes a certain address. It reports whether the address was free and belongs to the pool.
func (p *Pool) Claim(ip string) bool {
	address, err := netip.ParseAddr(ip)
	if err != nil || address.Less(p.first) || p.last.Less(address) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used[address] {
		return false
	}
	p.used[address] = true
	return true
}

// Give frees an address. It ignores addresses that do not belong to the pool.
func (p *Pool) Give(ip string) {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.used, address)
}

func (p *Pool) advance() {
	if p.next == p.last {
		p.next = p.first
		return
	}
	p.next = p.next.Next()
}
