package ratelimit_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/ratelimit"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// nth returns the key of the n-th address.
func nth(n uint32) ratelimit.Key {
	var ip [4]byte
	binary.BigEndian.PutUint32(ip[:], n)
	return ratelimit.OfAddress(netip.AddrFrom4(ip))
}

// model implements nginx's limit_req with two zones, according to its documentation and source, without limits for the
// number of clients.
type model struct {
	rates, bursts [2]int64
	excess        map[ratelimit.Key][2]int64
	last          map[ratelimit.Key]int64
}

func (m *model) take(key ratelimit.Key, ms int64) bool {
	last, known := m.last[key]
	var next [2]int64
	for i := range next {
		if m.rates[i] == 0 || !known {
			continue
		}
		next[i] = max(0, m.excess[key][i]-m.rates[i]*(ms-last)/1000+1000)
		if next[i] > m.bursts[i]*1000 {
			return false
		}
	}
	m.excess[key], m.last[key] = next, ms
	return true
}

// TestCountsLikeNginx compares random requests of a few clients with the model.
func TestCountsLikeNginx(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		rates := ratelimit.Rates{PerSecond: random.IntN(30), PerMinute: random.IntN(300)}
		bursts := ratelimit.Bursts{PerSecond: random.IntN(20), PerMinute: random.IntN(50)}
		m := &model{
			rates:  [2]int64{int64(rates.PerSecond) * 1000, int64(rates.PerMinute) * 1000 / 60},
			bursts: [2]int64{int64(bursts.PerSecond), int64(bursts.PerMinute)},
			excess: map[ratelimit.Key][2]int64{}, last: map[ratelimit.Key]int64{},
		}
		zone := ratelimit.NewZones().Requests("shop/web", rates)
		refused, now := 0, int64(0)
		for n := range 2000 {
			now += random.Int64N(1 << random.IntN(9))
			if random.IntN(200) == 0 {
				now += random.Int64N(1_000_000)
			}
			key := nth(random.Uint32N(3))
			got, want := zone.Take(key, bursts, time.Duration(now)*time.Millisecond), m.take(key, now)
			if got != want {
				t.Fatalf("seed %d, request %d of %v with %v: %v, and nginx says %v", seed, n, rates, bursts, got, want)
			}
			if !got {
				refused++
			}
		}
		if (rates.PerSecond > 0 || rates.PerMinute > 0) && refused == 0 && bursts.PerMinute+bursts.PerSecond < 10 &&
			rates.PerSecond < 3 {
			t.Errorf("seed %d: nothing was refused with %v and %v", seed, rates, bursts)
		}
	}
}

// TestBursts checks the documented burst of 1 + N × multiplier requests.
func TestBursts(t *testing.T) {
	for _, test := range []struct {
		rates  ratelimit.Rates
		bursts ratelimit.Bursts
		want   int
	}{
		{ratelimit.Rates{PerSecond: 10}, ratelimit.Bursts{PerSecond: 50}, 51},
		{ratelimit.Rates{PerSecond: 1}, ratelimit.Bursts{}, 1},
		{ratelimit.Rates{PerMinute: 1}, ratelimit.Bursts{PerMinute: 5}, 6},
		{ratelimit.Rates{PerSecond: 10, PerMinute: 4}, ratelimit.Bursts{PerSecond: 50, PerMinute: 20}, 21},
		{ratelimit.Rates{PerSecond: 1_000_000}, ratelimit.Bursts{PerSecond: 1000}, 1001},
		{ratelimit.Rates{}, ratelimit.Bursts{}, 5000},
	} {
		zone, got := ratelimit.NewZones().Requests("z", test.rates), 0
		for range 5000 {
			if zone.Take(nth(7), test.bursts, time.Second) {
				got++
			}
		}
		if got != test.want {
			t.Errorf("%+v with %+v: %d requests at once, want %d", test.rates, test.bursts, got, test.want)
		}
	}
}

// TestLongSilence checks that long times and high rates cause no overflow.
func TestLongSilence(t *testing.T) {
	zone := ratelimit.NewZones().Requests("z", ratelimit.Rates{PerSecond: 1_000_000, PerMinute: 1_000_000})
	bursts := ratelimit.Bursts{PerSecond: 1_000_000_000, PerMinute: 1_000_000_000}
	for _, now := range []time.Duration{0, time.Hour, 100 * 365 * 24 * time.Hour,
		250 * 365 * 24 * time.Hour, time.Hour} {
		if !zone.Take(nth(1), bursts, now) {
			t.Errorf("refused after %v", now)
		}
	}
}

// TestAFullZone checks that a full zone does not drop a client that is being limited when many clients send a few
// requests each, and that these clients are accepted.
func TestAFullZone(t *testing.T) {
	zone := ratelimit.NewZones().Requests("z", ratelimit.Rates{PerMinute: 1})
	bursts := ratelimit.Bursts{PerMinute: 5}
	for range 6 {
		zone.Take(nth(0), bursts, 0)
	}
	for n := range uint32(1 << 19) {
		if !zone.Take(nth(n+1), bursts, time.Duration(n)*time.Microsecond) {
			t.Fatalf("client %d was refused", n)
		}
	}
	if zone.Take(nth(0), bursts, time.Second) {
		t.Error("the zone has forgotten who had too many")
	}
}

// TestDelays checks how long requests beyond a rate must wait: until the client keeps its rate, as in nginx.
func TestDelays(t *testing.T) {
	zone := ratelimit.NewZones().Requests("z", ratelimit.Rates{PerSecond: 2})
	bursts, undelayed := ratelimit.Bursts{PerSecond: 4}, ratelimit.Bursts{PerSecond: 2}
	for n, want := range []time.Duration{0, 0, 0, 500 * time.Millisecond, time.Second} {
		if !zone.Allows(nth(1), bursts, 0) {
			t.Errorf("request %d is not allowed", n+1)
		}
		if got, ok := zone.TakeDelayed(nth(1), bursts, undelayed, 0); got != want || !ok {
			t.Errorf("request %d waits %v, %t, want %v", n+1, got, ok, want)
		}
	}
	if _, ok := zone.TakeDelayed(nth(1), bursts, undelayed, 0); ok || zone.Allows(nth(1), bursts, 0) {
		t.Error("a request beyond the burst is accepted")
	}
	if got, ok := zone.TakeDelayed(nth(1), bursts, undelayed, time.Second); got != 500*time.Millisecond || !ok {
		t.Errorf("a second later, a request waits %v, %t", got, ok)
	}
}

// TestSmallZone checks that a small zone does not grow, and that a zone with another size has its own state.
func TestSmallZone(t *testing.T) {
	zones, rates := ratelimit.NewZones(), ratelimit.Rates{PerMinute: 1}
	zone, other := zones.SizedRequests("/z", rates, 512), zones.SizedRequests("/z", rates, 1024)
	const clients = 10_000
	for n := range uint32(clients) {
		zone.Take(nth(n), ratelimit.Bursts{}, 0)
	}
	known := 0
	for n := range uint32(clients) {
		if !zone.Allows(nth(n), ratelimit.Bursts{}, 0) {
			known++
		}
	}
	if known == 0 || known > 512 {
		t.Errorf("a zone for 512 clients knows %d", known)
	}
	if !other.Allows(nth(clients-1), ratelimit.Bursts{}, 0) {
		t.Error("a zone with another size has the same state")
	}
}

// TestMemory measures the memory for 100,000 clients of a zone, and checks that it is released.
func TestMemory(t *testing.T) {
	before, zones := fixture.Heap(), ratelimit.NewZones()
	zone := zones.Requests("z", ratelimit.Rates{PerSecond: 10, PerMinute: 300})
	bursts := ratelimit.Bursts{PerSecond: 50, PerMinute: 1500}
	const clients = 100_000
	for n := range uint32(clients) {
		zone.Take(nth(n), bursts, 0)
	}
	grown := fixture.Heap() - before
	t.Logf("%d clients: %.1f MB", clients, float64(grown)/(1<<20))
	if grown > 16<<20 {
		t.Errorf("%d clients take %d bytes", clients, grown)
	}
	forgotten := 0
	for n := range uint32(clients) {
		for range 51 {
			zone.Take(nth(n), bursts, 0)
		}
		if zone.Take(nth(n), bursts, 0) {
			forgotten++
		}
	}
	if forgotten > 0 {
		t.Errorf("%d of %d clients were forgotten", forgotten, clients)
	}
	for n := range uint32(1000) {
		zone.Take(nth(n), bursts, time.Hour)
	}
	if left := fixture.Heap() - before; left > 2<<20 {
		t.Errorf("an hour later it takes %d bytes", left)
	}
	runtime.KeepAlive(zones)
}

// TestZonesLiveAsLongAsTheirFilters checks that successive filters share a zone, and that a new zone is created after
// the last reference is gone.
func TestZonesLiveAsLongAsTheirFilters(t *testing.T) {
	zones := ratelimit.NewZones()
	rates := ratelimit.Rates{PerMinute: 1}
	first := zones.Requests("z", rates)
	if !first.Take(nth(1), ratelimit.Bursts{}, 0) || zones.Requests("z", rates).Take(nth(1), ratelimit.Bursts{}, 0) {
		t.Error("it is not one zone")
	}
	for name, other := range map[string]*ratelimit.Requests{
		"another Ingress": zones.Requests("y", rates),
		"another rate":    zones.Requests("z", ratelimit.Rates{PerMinute: 2}),
	} {
		if !other.Take(nth(1), ratelimit.Bursts{}, 0) {
			t.Errorf("%s has the same zone", name)
		}
	}
	runtime.KeepAlive(first)
	fixture.Holds(t, "the zone is still there", func() bool {
		runtime.GC()
		return zones.Requests("z", rates).Take(nth(1), ratelimit.Bursts{}, 0)
	})
}

func TestConnections(t *testing.T) {
	zone := ratelimit.NewZones().Connections("z")
	for n, want := range []bool{true, true, false, false} {
		if got := zone.Enter(nth(1), 2); got != want {
			t.Errorf("request %d of a client that may have two: %v", n+1, got)
		}
	}
	if !zone.Enter(nth(2), 2) {
		t.Error("another client is refused")
	}
	zone.Leave(nth(1))
	if !zone.Enter(nth(1), 2) || zone.Enter(nth(1), 2) {
		t.Error("who has left is counted")
	}
}

// TestManyAtATime checks that the limits hold for concurrent requests.
func TestManyAtATime(t *testing.T) {
	zones := ratelimit.NewZones()
	requests, connections := zones.Requests("z", ratelimit.Rates{PerMinute: 1}), zones.Connections("z")
	var taken, entered atomic.Int64
	var all sync.WaitGroup
	for g := range uint32(8) {
		all.Go(func() {
			for n := range uint32(20_000) {
				if requests.Take(nth(n%4), ratelimit.Bursts{PerMinute: 9}, 0) {
					taken.Add(1)
				}
				requests.Take(nth((g+1)<<16+n), ratelimit.Bursts{PerMinute: 9}, 0)
				if connections.Enter(nth(n%4), 3) {
					if entered.Add(1) > 12 {
						t.Error("more than 3 of each of 4 clients")
					}
					entered.Add(-1)
					connections.Leave(nth(n % 4))
				}
			}
		})
	}
	all.Wait()
	if got := taken.Load(); got != 40 {
		t.Errorf("%d requests of 4 clients were taken, want 10 of each", got)
	}
}

func TestOfText(t *testing.T) {
	if first := ratelimit.OfText("a"); first != ratelimit.OfText("a") || first == ratelimit.OfText("b") {
		t.Error("texts are not told apart")
	}
}

func BenchmarkTake(b *testing.B) {
	for _, clients := range []uint32{1, 100_000, 1 << 20} {
		b.Run(fmt.Sprintf("%d clients", clients), func(b *testing.B) {
			zone := ratelimit.NewZones().Requests("z", ratelimit.Rates{PerSecond: 1000})
			began := time.Now()
			b.RunParallel(func(pb *testing.PB) {
				random := rand.New(rand.NewPCG(rand.Uint64(), 1))
				for pb.Next() {
					zone.Take(nth(random.Uint32N(clients)), ratelimit.Bursts{PerSecond: 5000}, time.Since(began))
				}
			})
		})
	}
}

// TestTenant22Zones checks that the zones of one namespace, however many clients they have, do not affect the limits of
// another namespace.
func TestTenant22Zones(t *testing.T) {
	zones, rates, bursts := ratelimit.NewZones(), ratelimit.Rates{PerMinute: 1}, ratelimit.Bursts{PerMinute: 1}
	var kept []*ratelimit.Requests
	for z := range 10 {
		zone := zones.Requests(fmt.Sprint("b/", z), rates)
		kept = append(kept, zone)
		for n := range uint32(1 << 18) {
			zone.Take(nth(n), bursts, 0)
		}
	}
	zone := zones.Requests("a/main", rates)
	const clients = 10_000
	held := 0
	for range 3 {
		for n := range uint32(clients) {
			if !zone.Take(nth(n), bursts, 0) {
				held++
			}
		}
	}
	if held < clients*9/10 {
		t.Errorf("%d of %d clients with a request too many are held back", held, clients)
	}
	runtime.KeepAlive(kept)
}
