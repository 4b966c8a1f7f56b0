// Package ratelimit counts the requests and the connections of clients as nginx's limit_req and limit_conn do. A zone counts those of one
// Ingress, client by client, and takes the time from its caller.
//
// The excess of a client is how many requests it is ahead of its rate, in thousandths of one, as in nginx: it grows by 1000 with each
// request and sinks with time. A zone holds a bounded number of clients. Where nginx forgets the one that has been silent for longest, so that
// many addresses with a request each make it forget the client that it holds back, a full zone forgets the client that it would have forgotten
// first in any case: the one whose excess is the first to be gone.
package ratelimit

import (
	"hash/maphash"
	"net/netip"
)

// perRequest is what one request adds to an excess.
const perRequest = 1000

// Key is what is counted: an address, or the digest of something else.
type Key [16]byte

// OfAddress is the key of an address. As in nginx each address has its own, also where an IPv6 network has many.
func OfAddress(address netip.Addr) Key { return address.As16() }

// seeds make the two halves of a digest, and the places of keys in tables. No client knows them.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed(), maphash.MakeSeed()}

// OfText is the key of a text, whatever its length.
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

// Rates are how many requests a client may have in the long run; zero is any number. A client has to keep to both.
type Rates struct{ PerSecond, PerMinute int }

// speeds are the thousandths of a request by which an excess sinks in a second. A minute is cut as in nginx.
func (r Rates) speeds() [2]int64 {
	return [2]int64{int64(r.PerSecond) * perRequest, int64(r.PerMinute) * perRequest / 60}
}

// Bursts are how many requests a client may be ahead of each of the two rates.
type Bursts struct{ PerSecond, PerMinute int }

// after returns an excess after some milliseconds and one more request.
func after(excess, speed, ms int64) int64 {
	if ms > lifetime(excess, speed) {
		// Here the product below might be more than there are numbers for.
		return 0
	}
	return max(0, excess-speed*ms/1000+perRequest)
}

// lifetime returns for how many milliseconds an excess says more of a client than that it is new.
func lifetime(excess, speed int64) int64 {
	return (excess+perRequest)*1000/speed + 1
}
