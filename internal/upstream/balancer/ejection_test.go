package balancer

import (
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/model/ir"
)

func TestEjection(t *testing.T) {
	for _, policy := range unkeyed {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, only(policy), 4)
			bad := w.endpoint(2)
			w.fail(bad, 2)
			Choice{Endpoint: bad}.Observe(0, false)
			w.fail(bad, 2)
			if w.out.Load() != 0 {
				t.Fatal("ejected after two failures in a row")
			}
			w.fail(bad, 1)
			for spell := time.Second; spell <= 128*time.Second; spell *= 2 {
				w.pass(min(spell, time.Minute) - 1)
				if n := w.counts(200, nil)[bad.Address()]; n != 0 {
					t.Fatalf("ejected for %v, it got %d requests", spell, n)
				}
				w.pass(1)
				if got := w.request(nil, true); got != bad.Address() {
					t.Fatalf("after %v the trial went to %s", spell, got)
				}
			}
			w.pass(time.Minute)
			if got := w.request(nil, false); got != bad.Address() {
				t.Fatalf("the trial went to %s", got)
			}
			for i := range 4 {
				Choice{Endpoint: w.endpoint(i)}.Observe(time.Second, false)
			}
			if n := w.counts(400, nil)[bad.Address()]; n < 50 {
				t.Errorf("after a trial that went well, it got %d of 400 requests", n)
			}
			w.fail(bad, 3)
			w.pass(time.Second)
			if got := w.request(nil, false); got != bad.Address() {
				t.Errorf("a new ejection lasts longer than the first one did: %s", got)
			}
		})
	}
}

func TestOneTrialAtATime(t *testing.T) {
	w := newWorld(t, nil, 4)
	bad := w.endpoint(0)
	w.fail(bad, 3)
	w.pass(time.Second)
	trial := w.pick(nil)
	if trial.Endpoint != bad {
		t.Fatal("no trial")
	}
	trial.Begin()
	if n := w.counts(100, nil)[bad.Address()]; n != 0 {
		t.Fatalf("%d more requests went to an endpoint on trial", n)
	}
	// Requests that started before the ejection do not affect it.
	Choice{Endpoint: bad}.Observe(0, false)
	Choice{Endpoint: bad}.Observe(0, true)
	if n := w.counts(100, nil)[bad.Address()]; n != 0 {
		t.Fatalf("%d requests went to it after an old one had ended", n)
	}
	w.pass(trialTime)
	if w.pick(nil).Endpoint != bad {
		t.Fatal("a trial that does not end is the last one")
	}
	trial.Observe(0, false)
	if n := w.counts(100, nil)[bad.Address()]; n != 25 {
		t.Errorf("after the trial it gets %d of 100", n)
	}
}

func TestRetryIsNotATrial(t *testing.T) {
	w := newWorld(t, nil, 4)
	bad, other := w.endpoint(0), w.endpoint(1)
	w.fail(bad, 3)
	w.pass(time.Second)
	for range 20 {
		if w.pick(nil, other).Endpoint == bad {
			t.Fatal("a request that has failed already was put at risk")
		}
	}
	// An ejected endpoint is better than one that just failed for this request.
	if got := w.pick(nil, other, w.endpoint(2), w.endpoint(3)).Endpoint; got != bad {
		t.Errorf("all others have failed, and it goes to %s", got.Address())
	}
}

func TestHalfAtMost(t *testing.T) {
	for n, most := range map[int]int{1: 0, 2: 1, 3: 1, 4: 2, 10: 5} {
		w := newWorld(t, nil, n)
		for i := range n {
			w.fail(w.endpoint(i), 5)
		}
		if got := int(w.out.Load()); got != most {
			t.Errorf("of %d endpoints that fail, %d are ejected, want %d", n, got, most)
		}
	}
}

func TestAllRemainingAreEjected(t *testing.T) {
	for _, policy := range unkeyed {
		w := newWorld(t, only(policy), 4)
		w.fail(w.endpoint(0), 3)
		w.fail(w.endpoint(1), 3)
		w.SetEndpoints(addresses(2))
		if n := w.counts(1000, nil)["10.0.0.1:80"]; n < 350 || n > 650 {
			t.Errorf("%s: one of two ejected endpoints gets %d of 1000", policy, n)
		}
		// The endpoint that responds returns, and gets all requests until the other one returns.
		back := w.request(nil, false)
		if n := w.counts(100, nil)[back]; n != 100 {
			t.Errorf("%s: the one that answered gets %d of 100", policy, n)
		}
	}
}

func TestEjectAfter(t *testing.T) {
	w := newWorld(t, &ir.LoadBalancing{EjectAfter: 1}, 2)
	w.fail(w.endpoint(0), 1)
	if w.out.Load() != 1 {
		t.Fatal("one failure does not eject")
	}
	w.SetPolicy(&ir.LoadBalancing{EjectAfter: -1})
	w.fail(w.endpoint(0), 100)
	if n := w.counts(100, nil)["10.0.0.0:80"]; n != 50 {
		t.Errorf("never ejected, it gets %d of 100", n)
	}
}

func TestUnhealthy(t *testing.T) {
	for _, policy := range unkeyed {
		w := newWorld(t, only(policy), 3)
		w.SetHealthy("10.0.0.1:80", false)
		w.SetHealthy("192.0.2.1:80", false)
		w.pass(time.Hour)
		if n := w.counts(300, nil)["10.0.0.1:80"]; n != 0 {
			t.Errorf("%s: an unhealthy endpoint gets %d requests", policy, n)
		}
		w.SetEndpoints(addresses(4))
		if n := w.counts(300, nil)["10.0.0.1:80"]; n != 0 {
			t.Errorf("%s: after a change of the list, an unhealthy endpoint gets %d requests", policy, n)
		}
		w.SetHealthy("10.0.0.1:80", true)
		if n := w.counts(400, nil)["10.0.0.1:80"]; n < 50 {
			t.Errorf("%s: healthy again, it gets %d of 400", policy, n)
		}
		for _, e := range addresses(4) {
			w.SetHealthy(e.Address, false)
		}
		if count := w.counts(400, nil); len(count) != 4 {
			t.Errorf("%s: with all unhealthy, %d are asked", policy, len(count))
		}
	}
}

// TestUnhealthyIsNotOnTrial checks that an unhealthy endpoint gets no trial, even after its ejection time.
func TestUnhealthyIsNotOnTrial(t *testing.T) {
	w := newWorld(t, nil, 4)
	bad := w.endpoint(0)
	w.fail(bad, 3)
	w.SetHealthy(bad.Address(), false)
	w.pass(time.Minute)
	if n := w.counts(100, nil)[bad.Address()]; n != 0 {
		t.Fatalf("it gets %d requests", n)
	}
	w.SetHealthy(bad.Address(), true)
	if got := w.request(nil, false); got != bad.Address() {
		t.Errorf("the trial went to %s", got)
	}
}

func TestStateSurvives(t *testing.T) {
	w := newWorld(t, nil, 4)
	bad, busy := w.endpoint(0), w.endpoint(1)
	w.fail(bad, 3)
	c := Choice{Endpoint: busy}
	c.Begin()
	w.SetPolicy(only(ir.PolicyLeastRequest))
	w.SetEndpoints(addresses(8))
	w.SetPolicy(hashed())
	w.SetPolicy(nil)
	if w.endpoint(0) != bad || w.counts(100, nil)[bad.Address()] != 0 {
		t.Error("an ejected endpoint is back after a change")
	}
	// Remove the endpoint and add it again.
	w.SetEndpoints(addresses(8)[2:])
	w.pass(time.Minute - 1)
	w.SetEndpoints(addresses(8))
	if w.endpoint(0) != bad || !bad.out() || w.endpoint(1) != busy || busy.InFlight() != 1 {
		t.Error("an endpoint that comes back is not the one it was")
	}
	w.SetEndpoints(addresses(8)[2:])
	w.pass(time.Minute)
	w.SetEndpoints(addresses(9)[2:])
	w.SetEndpoints(addresses(8))
	if w.endpoint(0) == bad {
		t.Error("what left long ago is still remembered")
	}
	if w.endpoint(1) != busy {
		t.Error("an endpoint with a request under way was forgotten")
	}
	c.End()
	if busy.InFlight() != 0 {
		t.Errorf("%d requests are under way, want none", busy.InFlight())
	}
}

func TestSlowStart(t *testing.T) {
	for _, policy := range []ir.Policy{ir.PolicyRoundRobin, ir.PolicyRandom, ir.PolicyEWMA} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, &ir.LoadBalancing{Policy: policy, SlowStart: 10 * time.Second}, 3)
			if count := w.counts(3000, nil); count["10.0.0.2:80"] < 800 {
				t.Fatalf("the first endpoints of a backend start slowly: %v", count)
			}
			w.SetEndpoints(addresses(4))
			// Of four endpoints, the new one starts with 10 % of a full share, then gets 55 %, then all: the expected
			// fractions are 0.1/3.1, 0.55/3.55 and 1/4.
			for _, step := range []struct {
				after time.Duration
				share float64
			}{{0, 0.1 / 3.1}, {5 * time.Second, 0.55 / 3.55}, {5 * time.Second, 0.25}} {
				w.pass(step.after)
				got := w.counts(10_000, nil)["10.0.0.3:80"]
				w.between("the new one of 10,000", got, int(8000*step.share), int(12_000*step.share)+50)
			}
			if w.slowUntil.Load() != 0 {
				t.Error("it still counts as slow")
			}
		})
	}
}

// TestSlowStartOfAll checks that there is no slow start if all endpoints are new.
func TestSlowStartOfAll(t *testing.T) {
	w := newWorld(t, &ir.LoadBalancing{SlowStart: time.Minute}, 2)
	w.SetEndpoints(addresses(4)[2:])
	if count := w.counts(1000, nil); count["10.0.0.2:80"] < 400 || count["10.0.0.3:80"] < 400 {
		t.Errorf("shares are %v", count)
	}
}
