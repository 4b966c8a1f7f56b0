package balancer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func TestNoEndpoint(t *testing.T) {
	b := New("shop/web/80")
	if _, ok := b.Pick(nil, nil); ok || b.ID() != "shop/web/80" || b.Endpoints() != nil || b.Ready() {
		t.Error("a new backend has an endpoint")
	}
}

func TestReady(t *testing.T) {
	w := newWorld(t, nil, 2)
	if !w.Ready() {
		t.Error("a backend with endpoints is not ready")
	}
	w.SetEndpoints([]ir.Endpoint{{Address: "10.0.0.1:80", Terminating: true}})
	if w.Ready() || w.pick(nil).Endpoint.Address() != "10.0.0.1:80" {
		t.Error("an endpoint that terminates is ready, or is not asked although there is no other")
	}
}

func TestTurns(t *testing.T) {
	w := newWorld(t, nil, 3)
	for address, n := range w.counts(300, nil) {
		w.between(address, n, 100, 100)
	}
	w.fail(w.endpoint(1), 3)
	count := w.counts(300, nil)
	// The share of the skipped endpoint does not go to its neighbor alone.
	w.between("first", count["10.0.0.0:80"], 150, 150)
	w.between("third", count["10.0.0.2:80"], 150, 150)
}

func TestDistribution(t *testing.T) {
	for _, policy := range unkeyed {
		for _, n := range []int{1, 2, 10} {
			t.Run(fmt.Sprint(policy, n), func(t *testing.T) {
				w := newWorld(t, only(policy), n)
				count := w.counts(1000*n, nil)
				for i := range n {
					w.between(addresses(n)[i].Address, count[addresses(n)[i].Address], 800, 1200)
				}
			})
		}
	}
}

func TestLeastRequestGoesWhereLessIsUnderWay(t *testing.T) {
	w := newWorld(t, only(ir.PolicyLeastRequest), 2)
	for range 3 {
		Choice{Endpoint: w.endpoint(0)}.Begin()
	}
	for range 3 {
		c := w.pick(nil)
		if c.Endpoint != w.endpoint(1) {
			t.Fatal("the busy endpoint was chosen")
		}
		c.Begin()
	}
	count := w.counts(1000, nil)
	w.between("both are busy", count["10.0.0.0:80"], 400, 600)
}

func TestEWMAGoesWhereItIsQuick(t *testing.T) {
	w := newWorld(t, only(ir.PolicyEWMA), 2)
	slow, quick := Choice{Endpoint: w.endpoint(0)}, Choice{Endpoint: w.endpoint(1)}
	slow.Observe(time.Second, false)
	quick.Observe(100*time.Millisecond, false)
	if got := w.counts(100, nil)[quick.Endpoint.Address()]; got != 100 {
		t.Errorf("the quick one gets %d of 100", got)
	}
	for range 10 {
		quick.Begin()
	}
	if got := w.counts(100, nil)[slow.Endpoint.Address()]; got != 100 {
		t.Errorf("with ten under way at the quick one, the slow one gets %d of 100", got)
	}
	for range 10 {
		quick.End()
	}
	// One slow response has an effect at once, many quick ones only gradually.
	quick.Observe(3*time.Second, false)
	if w.pick(nil).Endpoint != slow.Endpoint {
		t.Error("one answer after 3 s did not count")
	}
	for range 20 {
		w.pass(time.Second)
		quick.Observe(10*time.Millisecond, false)
		slow.Observe(time.Second, false)
	}
	if w.pick(nil).Endpoint != quick.Endpoint {
		t.Error("after 20 s of quick answers the endpoint is still avoided")
	}
}

func TestFailureIsNotQuick(t *testing.T) {
	w := newWorld(t, only(ir.PolicyEWMA), 2)
	bad, good := Choice{Endpoint: w.endpoint(0)}, Choice{Endpoint: w.endpoint(1)}
	for range 2 {
		w.pass(time.Second)
		good.Observe(100*time.Millisecond, false)
		bad.Observe(200*time.Millisecond, false)
	}
	w.pass(time.Second)
	bad.Observe(time.Microsecond, true)
	if w.pick(nil).Endpoint == bad.Endpoint {
		t.Error("an endpoint that refuses quickly is preferred")
	}
}

func TestNewEndpointStartsAtTheMean(t *testing.T) {
	w := newWorld(t, only(ir.PolicyEWMA), 2)
	Choice{Endpoint: w.endpoint(0)}.Observe(time.Second, false)
	Choice{Endpoint: w.endpoint(1)}.Observe(3*time.Second, false)
	w.SetEndpoints(addresses(3))
	if got := w.endpoint(2).latency.read(w.now()); math.Abs(got-2) > 0.001 {
		t.Errorf("it starts at %v s, want 2", got)
	}
}

func TestLatencySurvivesTheWrapOfItsClock(t *testing.T) {
	var l latency
	wrap := int64(math.MaxUint32) * int64(time.Millisecond)
	l.observe(wrap-int64(time.Second), time.Second, false)
	if got, want := l.read(wrap+int64(9*time.Second)), math.Exp(-1); math.Abs(got-want) > 0.01 {
		t.Errorf("10 s later it is %v, want %v", got, want)
	}
}

func TestHashKeepsItsEndpoint(t *testing.T) {
	w, other := newWorld(t, hashed(), 10), newWorld(t, hashed(), 10)
	count := map[string]int{}
	for i := range 10_000 {
		v := &visitor{key: fmt.Sprint("user-", i)}
		got := w.pick(v).Endpoint.Address()
		if again := w.pick(v).Endpoint.Address(); again != got {
			t.Fatalf("key %s goes to %s, then to %s", v.key, got, again)
		}
		if replica := other.pick(v).Endpoint.Address(); replica != got {
			t.Fatalf("key %s goes to %s, with another replica to %s", v.key, got, replica)
		}
		count[got]++
	}
	for address, n := range count {
		w.between(address, n, 700, 1300)
	}
}

func TestNewEndpointMovesFewKeys(t *testing.T) {
	w, keys := newWorld(t, hashed(), 9), 10_000
	before := make([]string, keys)
	for i := range before {
		before[i] = w.pick(&visitor{key: fmt.Sprint(i)}).Endpoint.Address()
	}
	w.SetEndpoints(addresses(10))
	moved := 0
	for i := range before {
		if now := w.pick(&visitor{key: fmt.Sprint(i)}).Endpoint.Address(); now != before[i] {
			moved++
			if now != "10.0.0.9:80" {
				t.Fatalf("key %d moved from %s to %s, which is not new", i, before[i], now)
			}
		}
	}
	w.between("keys that moved", moved, keys/10*7/10, keys/10*13/10)
	w.SetEndpoints(addresses(9))
	for i := range before {
		if now := w.pick(&visitor{key: fmt.Sprint(i)}).Endpoint.Address(); now != before[i] {
			t.Fatalf("key %d is at %s, not back at %s", i, now, before[i])
		}
	}
}

func TestRingAfterChangesEqualsANewRing(t *testing.T) {
	w := newWorld(t, hashed(), 20)
	for _, n := range []int{3, 0, 7, 40, 39} {
		w.SetEndpoints(addresses(n))
	}
	got, want := w.state.Load().ring, newWorld(t, hashed(), 39).state.Load().ring
	if len(got.points) != len(want.points) {
		t.Fatalf("%d points, want %d", len(got.points), len(want.points))
	}
	for i := range got.points {
		if got.points[i].at != want.points[i].at || got.at(i).Address() != want.at(i).Address() {
			t.Fatalf("point %d differs", i)
		}
	}
}

func TestHashOfFailedEndpoint(t *testing.T) {
	w, v := newWorld(t, hashed(), 5), &visitor{key: "k"}
	own := w.pick(v).Endpoint
	second := w.pick(v, own).Endpoint
	if second == own {
		t.Fatal("the endpoint that failed for the request is asked again")
	}
	w.fail(own, 3)
	for range 10 {
		if got := w.pick(v).Endpoint; got != second {
			t.Fatalf("while its endpoint is ejected, the key goes to %s, want %s", got.Address(), second.Address())
		}
	}
	w.pass(2 * time.Second)
	if got := w.request(v, false); got != own.Address() {
		t.Errorf("afterwards the key goes to %s, want %s", got, own.Address())
	}
}

func TestNothingToHash(t *testing.T) {
	for name, lb := range map[string]*ir.LoadBalancing{
		"empty key": hashed(), "no template": {Policy: ir.PolicyHash},
		"bad template": {Policy: ir.PolicyHash, HashBy: "$nosuch"},
	} {
		w := newWorld(t, lb, 3)
		for address, n := range w.counts(300, &visitor{}) {
			w.between(name+": "+address, n, 100, 100)
		}
		w.counts(1, nil)
	}
}

func TestSubset(t *testing.T) {
	lb := hashed()
	lb.HashSubset = 3
	w := newWorld(t, lb, 10)
	all := map[string]int{}
	for i := range 200 {
		count := w.counts(300, &visitor{key: fmt.Sprint(i)})
		if len(count) != 3 {
			t.Fatalf("key %d has %d endpoints, want 3", i, len(count))
		}
		for address, n := range count {
			w.between(address, n, 50, 150)
			all[address]++
		}
	}
	if len(all) != 10 {
		t.Errorf("all subsets together have %d endpoints of 10", len(all))
	}
	v := &visitor{key: "1"}
	first := w.pick(v).Endpoint
	for range 100 {
		if w.pick(v, first).Endpoint == first {
			t.Fatal("the endpoint that failed for the request is asked again")
		}
	}
	// The subset is larger than the list.
	w.SetEndpoints(addresses(2))
	if count := w.counts(100, v); len(count) != 2 {
		t.Errorf("a subset of 3 of 2 endpoints has %d", len(count))
	}
}

func TestTried(t *testing.T) {
	for _, policy := range append(unkeyed, ir.PolicyHash) {
		lb := &ir.LoadBalancing{Policy: policy, HashBy: "$host"}
		w, v := newWorld(t, lb, 3), &visitor{key: "x", ip: "192.0.2.1"}
		a, b, c := w.endpoint(0), w.endpoint(1), w.endpoint(2)
		for range 50 {
			if got := w.pick(v, a, c).Endpoint; got != b {
				t.Fatalf("%s: %s was tried, and is asked again", policy, got.Address())
			}
			w.pick(v, a, b, c)
		}
		w.SetEndpoints(addresses(1))
		if got := w.pick(v, a).Endpoint; got != a {
			t.Fatalf("%s: the only endpoint is not asked again", policy)
		}
	}
}

func TestDuplicateAddressesAreOneEndpoint(t *testing.T) {
	w := newWorld(t, nil, 0)
	w.SetEndpoints([]ir.Endpoint{{Address: "a:1"}, {Address: "b:1"}, {Address: "a:1"}})
	if count := w.counts(100, nil); count["a:1"] != 50 || count["b:1"] != 50 {
		t.Errorf("shares are %v", count)
	}
}

func TestListIsACopy(t *testing.T) {
	w, l := newWorld(t, nil, 0), addresses(2)
	w.SetEndpoints(l)
	before := w.Endpoints()
	l[0].Address = "changed"
	w.SetEndpoints(addresses(2))
	if after := w.Endpoints(); after[0].Address != "10.0.0.0:80" || &after[0] != &before[0] {
		t.Errorf("endpoints are %v: an equal list should change nothing", after)
	}
}
