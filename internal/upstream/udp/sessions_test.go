package udp

import (
	"net/netip"
	"testing"
	"time"
)

func clientNumber(n int) key {
	return key{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), 1)}
}

// TestSpare checks which session is evicted if there is no room: first new ones that have waited long enough, then
// quiet verified ones, then other new ones, and never an active verified one.
func TestSpare(t *testing.T) {
	var all sessions
	talks := all.add(clientNumber(1), 0)
	all.verify(talks)
	quiet := all.add(clientNumber(2), 0)
	all.verify(quiet)
	if got := all.evictable(time.Second); got != nil {
		t.Errorf("%v goes, who was just there", got.key.client)
	}
	now := quietTime
	all.touch(talks, now)
	waiting := all.add(clientNumber(3), now-unverifiedTime)
	all.add(clientNumber(4), now)
	for i, want := range []*session{waiting, quiet} {
		got := all.evictable(now)
		if got != want {
			t.Fatalf("%d: %v goes, want %v", i, got.key.client, want.key.client)
		}
		all.remove(got)
	}
	for n := range 1000 {
		got := all.evictable(now)
		if got == nil || got.verified {
			t.Fatalf("%d: %v goes", n, got)
		}
		all.remove(got)
		all.add(clientNumber(n+10), now)
	}
}

func TestExpired(t *testing.T) {
	var all sessions
	first, second := all.add(clientNumber(1), 0), all.add(clientNumber(2), 1)
	all.verify(first)
	if rest := all.untilExpiry(5, 10); rest != 5 {
		t.Errorf("the first one expires in %v", rest)
	}
	if s := all.expired(9, 10); s != nil {
		t.Errorf("%v has expired too early", s.key.client)
	}
	all.touch(first, 9)
	if s := all.expired(11, 10); s != second {
		t.Errorf("%v has expired, want the second one", s)
	}
	all.remove(second)
	if s := all.expired(18, 10); s != nil {
		t.Errorf("%v has expired, who was active", s.key.client)
	}
}
