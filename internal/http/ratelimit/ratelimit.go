// Package ratelimit limits the request rate and the number of concurrent requests of clients, like nginx's limit_req
// and limit_conn. A zone holds the state of the clients of one Ingress, or of all Ingresses that use a zone of the
// administrator. The package has no clock: callers pass the current time.
//
// Each client has an excess, as in nginx: the number of requests that it has sent beyond its rate, in thousandths of a
// request. The excess grows by 1000 with each request and decreases over time. A zone stores a limited number of
// clients. If it is full, it removes the client whose excess will reach zero first. nginx instead removes the client
// that has sent no request for the longest time, which lets an attacker with many addresses push out a client that is
// being limited.
package ratelimit

import (
	"hash/maphash"
	"net/netip"
)

// perRequest is the amount by which each request increases the excess.
const perRequest = 1000

// Key identifies a client. It is an IP address, or a hash of the string that identifies the client.
type Key [16]byte

// OfAddress returns the key for an IP address. As in nginx, each IPv6 address has its own key, although a client often
// has a whole IPv6 network.
func OfAddress(address netip.Addr) Key { return address.As16() }

// seeds are random seeds for hash functions: two for the halves of a Key made from a string, and one for the position
// of a Key in hash tables. They are random so that clients cannot cause collisions.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

// OfText returns the key of a client that is identified by a string of any length.
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

// Rates are the maximum numbers of requests per second and per minute of a client. Zero means no limit. If both are
// set, both apply.
type Rates struct{ PerSecond, PerMinute int }

// speeds returns by how much the excess of a client decreases per second, first for the rate per second and then for
// the rate per minute. As in nginx, the value for the rate per minute is rounded down.
func (r Rates) speeds() [2]int64 {
	return [2]int64{int64(r.PerSecond) * perRequest, int64(r.PerMinute) * perRequest / 60}
}

// Bursts are the maximum numbers of requests that a client may send beyond its rate per second and its rate per minute.
type Bursts struct{ PerSecond, PerMinute int }

// The function after returns the new excess of a client that sends a request ms milliseconds after its last request.
// excess is its old excess, and speed is the decrease of the excess per second.
func after(excess, speed, ms int64) int64 {
	if ms > lifetime(excess, speed) {
		// The client counts as a new client. Return early, because the multiplication below could overflow for large
		// values of ms.
		return 0
	}
	return max(0, excess-speed*ms/1000+perRequest)
}

// lifetime returns the number of milliseconds after which a client with the given excess is treated like a new client.
func lifetime(excess, speed int64) int64 {
	return (excess+perRequest)*1000/speed + 1
}
