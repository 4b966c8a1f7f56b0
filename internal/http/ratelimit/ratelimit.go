// Package ratelimit limits the rate and the number of concurrent requests of clients, like nginx's limit_req and
// limit_conn. A zone holds the clients of one Ingress. Callers pass in the time.
//
// The excess of a client is how far it is ahead of its rate, in thousandths of a request, as in nginx. It grows by 1000
// with each request and decreases with time. A zone holds a limited number of clients. A full nginx zone drops the
// client without requests for the longest time, so a client that is being limited can be pushed out by many addresses
// that send one request each. Here a full zone drops the client whose excess reaches zero first.
package ratelimit

import (
	"hash/maphash"
	"net/netip"
)

// perRequest is the excess that one request adds.
const perRequest = 1000

// Key identifies a client: an address, or the digest of another text.
type Key [16]byte

// OfAddress returns the key of an address. As in nginx, each address has its own key, even if an IPv6 client has a
// whole network.
func OfAddress(address netip.Addr) Key { return address.As16() }

// seeds are the random hash seeds for the two halves of a digest, and for the positions of keys in tables. Clients
// cannot predict them.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

// OfText returns the key of a text of any length.
func OfText(text string) (k Key) {
	for half := range 2 {
		sum := maphash.String(seeds[half], text)
		for i := range 8 {
			k[8*half+i] = byte(sum >> (8 * i))
		}
	}
	return k
}

func (k *Key) hash() uint64 { return maphash.Bytes(seeds[2], k[:]) }

// Rates are the numbers of requests that a client may send per second and per minute. Zero means no limit. Both limits
// apply.
type Rates struct{ PerSecond, PerMinute int }

// speeds returns by how much an excess decreases per second, for both rates. As in nginx, the rate per minute is
// rounded down.
func (r Rates) speeds() [2]int64 {
	return [2]int64{int64(r.PerSecond) * perRequest, int64(r.PerMinute) * perRequest / 60}
}

// Bursts are the numbers of requests by which a client may be ahead of each rate.
type Bursts struct{ PerSecond, PerMinute int }

// after returns the excess after ms milliseconds and one more request.
func after(excess, speed, ms int64) int64 {
	if ms > lifetime(excess, speed) {
		// The product below could overflow.
		return 0
	}
	return max(0, excess-speed*ms/1000+perRequest)
}

// lifetime returns the number of milliseconds after which a client with this excess is treated like a new client.
func lifetime(excess, speed int64) int64 {
	return (excess+perRequest)*1000/speed + 1
}
