package balancer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func everyPolicy() map[string]*ir.LoadBalancing {
	subset := hashed()
	subset.HashSubset = 3
	all := map[string]*ir.LoadBalancing{
		"hash": hashed(), "subset": subset, "balanced": sticky(nil), "persistent": sticky(persistent),
		"change": sticky(changeOnFailure),
		"client": {ClientIP: time.Minute}, "slow": {SlowStart: time.Minute, Policy: ir.PolicyEWMA},
	}
	for _, p := range unkeyed[1:] {
		all[string(p)] = only(p)
	}
	return all
}

// TestChangesUnderLoad runs readers and writers at the same time. It is meant for the race detector, and checks that no
// request is in flight afterwards.
func TestChangesUnderLoad(t *testing.T) {
	w := newWorld(t, nil, 1)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := &visitor{ip: fmt.Sprint(rand.IntN(50)), key: fmt.Sprint(rand.IntN(50))}
				c, ok := w.Pick(v, nil)
				if !ok {
					t.Error("no endpoint, although every list has one")
					return
				}
				c.Begin()
				c.Observe(time.Duration(rand.IntN(1000)), rand.IntN(3) == 0)
				v.cookie = c.Cookie
				w.Pick(v, []*Endpoint{c.Endpoint})
				c.End()
			}
		})
	}
	policies := everyPolicy()
	for range 20 {
		for _, lb := range policies {
			w.SetPolicy(lb)
			w.SetEndpoints(addresses(1 + rand.IntN(12)))
			w.SetHealthy("10.0.0.0:80", rand.IntN(2) == 0)
			w.pass(300 * time.Millisecond)
		}
	}
	close(stop)
	readers.Wait()
	for _, e := range slices.AppendSeq(slices.Clone(w.state.Load().endpoints), maps.Values(w.gone)) {
		if e.InFlight() != 0 {
			t.Errorf("%s has %d requests under way", e.Address(), e.InFlight())
		}
	}
}

// TestHealthBetweenTwoDraws checks that the health of all endpoints may change while a policy draws two and compares
// them.
func TestHealthBetweenTwoDraws(t *testing.T) {
	for _, policy := range []ir.Policy{ir.PolicyEWMA, ir.PolicyLeastRequest} {
		w := newWorld(t, only(policy), 2)
		var writer sync.WaitGroup
		stop := make(chan struct{})
		writer.Go(func() {
			for healthy := false; ; healthy = !healthy {
				select {
				case <-stop:
					return
				default:
				}
				for _, e := range addresses(2) {
					w.SetHealthy(e.Address, healthy)
				}
			}
		})
		for range 100_000 {
			if c, ok := w.Pick(&visitor{}, nil); !ok || c.Endpoint == nil {
				t.Error("no endpoint, although the list has two")
				break
			}
		}
		close(stop)
		writer.Wait()
	}
}

// TestPickIsInTheList checks Pick with random lists, policies and events of endpoints.
func TestPickIsInTheList(t *testing.T) {
	policies := everyPolicy()
	names := make([]string, 0, len(policies))
	for name := range policies {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, nil, 0)
		var tried []*Endpoint
		v := &visitor{ip: "192.0.2.1", key: "k"}
		r.Repeat(map[string]func(*rapid.T){
			"list": func(r *rapid.T) {
				var l []ir.Endpoint
				for _, i := range rapid.SliceOfN(rapid.IntRange(0, 9), 0, 12).Draw(r, "list") {
					l = append(l, ir.Endpoint{Address: fmt.Sprintf("10.0.0.%d:80", i)})
				}
				w.SetEndpoints(l)
			},
			"policy": func(r *rapid.T) { w.SetPolicy(policies[rapid.SampledFrom(names).Draw(r, "policy")]) },
			"health": func(r *rapid.T) {
				address := fmt.Sprintf("10.0.0.%d:80", rapid.IntRange(0, 9).Draw(r, "which"))
				w.SetHealthy(address, rapid.Bool().Draw(r, "healthy"))
			},
			"time": func(r *rapid.T) {
				w.pass(time.Duration(rapid.IntRange(0, 100).Draw(r,
					"seconds")) * time.Second)
			},
			"new user": func(*rapid.T) { tried, v.cookie = nil, "" },
			"pick": func(r *rapid.T) {
				c, ok := w.Pick(v, tried)
				if ok != (len(w.Endpoints()) > 0) {
					r.Fatalf("an endpoint: %t of %d", ok, len(w.Endpoints()))
				}
				if !ok {
					return
				}
				listed := func(address string) bool {
					return slices.ContainsFunc(w.Endpoints(), func(e ir.Endpoint) bool { return e.Address == address })
				}
				if !listed(c.Endpoint.Address()) {
					r.Fatalf("%s is not in the list %v", c.Endpoint.Address(), w.Endpoints())
				}
				untried := slices.ContainsFunc(w.state.Load().endpoints,
					func(e *Endpoint) bool { return !slices.Contains(tried, e) })
				if untried && slices.Contains(tried, c.Endpoint) {
					r.Fatalf("%s was tried, and there is another one", c.Endpoint.Address())
				}
				failed := rapid.Bool().Draw(r, "failed")
				c.Observe(time.Millisecond, failed)
				if tried = append(tried, c.Endpoint); !failed {
					tried = nil
				}
				if c.Cookie != "" {
					v.cookie = c.Cookie
				}
			},
			"": func(r *rapid.T) {
				if n := len(w.state.Load().endpoints); w.ejected > n {
					r.Fatalf("%d of %d are ejected", w.ejected, n)
				}
			},
		})
	})
}

func TestPickAllocatesNothing(t *testing.T) {
	for _, p := range unkeyed {
		w := newWorld(t, &ir.LoadBalancing{Policy: p, SlowStart: time.Minute}, 10)
		w.SetEndpoints(addresses(20))
		w.fail(w.endpoint(3), 3)
		tried := []*Endpoint{w.endpoint(1)}
		v := &visitor{}
		if n := testing.AllocsPerRun(1000, func() { w.Pick(v, tried) }); n != 0 {
			t.Errorf("%s allocates %v times", p, n)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	for name, lb := range everyPolicy() {
		for _, n := range []int{1, 10, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				backend := New("shop/web/80")
				backend.SetPolicy(lb)
				backend.SetEndpoints(addresses(n))
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					v := &visitor{ip: "192.0.2.1", key: fmt.Sprint(rand.Uint64())}
					c, _ := backend.Pick(v, nil)
					v.cookie = c.Cookie
					for pb.Next() {
						c, _ := backend.Pick(v, nil)
						c.Begin()
						c.End()
					}
				})
			})
		}
	}
}

// BenchmarkChange replaces one of the endpoints, as a rolling update does.
func BenchmarkChange(b *testing.B) {
	for _, name := range []string{"round_robin", "hash", "persistent"} {
		for _, n := range []int{10, 1000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				backend := New("shop/web/80")
				backend.SetPolicy(everyPolicy()[name])
				l := addresses(n + 1)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					backend.SetEndpoints(l[i%2 : n+i%2])
				}
			})
		}
	}
}
