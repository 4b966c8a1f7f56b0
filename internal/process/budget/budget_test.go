package budget_test

import (
	"fmt"
	"math"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/process/budget"
)

// takeAll takes units until Take returns false, and returns how many it got.
func takeAll(s *budget.Share) (taken int64) {
	for s.Take(1) {
		taken++
	}
	return taken
}

// TestRoomForOneMore checks that there are units left for the next namespace, and for another port of a namespace,
// after any number of namespaces have taken all they can get.
func TestRoomForOneMore(t *testing.T) {
	b := budget.New(9000)
	if first, second := takeAll(b.Share("a", "tcp/1")), takeAll(b.Share("a", "tcp/2")); second == 0 || second > first {
		t.Errorf("the first port of a namespace gets %d, and the second one %d", first, second)
	}
	b = budget.New(9000)
	var before int64 = 9000
	for i := range 5 {
		got := takeAll(b.Share(fmt.Sprint("team-", i), "tcp/1"))
		if got == 0 || got > before {
			t.Fatalf("namespace %d gets %d, after one that got %d", i, got, before)
		}
		before = got
	}
	if b.Used() >= b.Limit() {
		t.Errorf("%d of %d are used", b.Used(), b.Limit())
	}
}

// TestOneAlone checks that a single owner gets more than half of the budget.
func TestOneAlone(t *testing.T) {
	if got := takeAll(budget.New(1000).Share("a", "tcp/1")); got < 500 || got > 700 {
		t.Errorf("it gets %d of 1000", got)
	}
}

// TestOneAloneOfALargeBudget checks that a single owner gets nearly all of a large budget, and that there is still room
// for another owner.
func TestOneAloneOfALargeBudget(t *testing.T) {
	b := budget.NewLarge(1000)
	if got := takeAll(b.Share("a", "")); got < 850 || got > 900 || !b.Share("b", "").Take(1) {
		t.Errorf("it gets %d of 1000", got)
	}
}

// TestUsage checks that a budget without a limit reports 0 as its limit.
func TestUsage(t *testing.T) {
	b := budget.New(100)
	b.Take(51)
	if got, want := b.Usage(), (budget.Usage{Used: 51, Limit: 100}); got != want || b.HasSpare() {
		t.Errorf("the usage is %+v, want %+v; half of the budget is free: %v", got, want, b.HasSpare())
	}
	b.SetLimit(0)
	if got := b.Usage(); got.Limit != 0 || !b.HasSpare() {
		t.Errorf("without a limit, the usage is %+v", got)
	}
}

// TestGiven checks that another owner can take units that were given back, and that equal names share one account.
func TestGiven(t *testing.T) {
	b := budget.New(100)
	s := b.Share("a", "udp/53")
	taken := takeAll(s)
	b.Share("a", "udp/53").Give(taken)
	if b.Used() != 0 || takeAll(b.Share("b", "udp/53")) != taken {
		t.Errorf("%d are used, and another one does not get %d", b.Used(), taken)
	}
}

// TestSpare checks that TakeSpare leaves half of the budget to others.
func TestSpare(t *testing.T) {
	b := budget.New(1000)
	s := b.Share("a", "")
	for s.TakeSpare(1) {
	}
	if b.Used() != 500 || !s.Take(1) {
		t.Errorf("they take %d of 1000", b.Used())
	}
}

// TestLeave checks that an account is shared until its last user leaves, and that later users get a new one.
func TestLeave(t *testing.T) {
	b := budget.New(100)
	first, second := b.Share("192.0.2.1", ""), b.Share("192.0.2.1", "")
	first.Leave()
	if third := b.Share("192.0.2.1", ""); third != second {
		t.Error("an account that has a user is forgotten")
	}
	second.Leave()
	second.Leave()
	if b.Share("192.0.2.1", "") == second {
		t.Error("an account without a user is kept")
	}
}

// TestSetLimit checks that a lower limit does not revoke units, and that 0 removes the limit.
func TestSetLimit(t *testing.T) {
	b := budget.New(100)
	s := b.Share("a", "")
	taken := takeAll(s)
	b.SetLimit(10)
	if b.Used() != taken || s.Take(1) || b.Take(1) {
		t.Errorf("%d are used of %d", b.Used(), b.Limit())
	}
	b.SetLimit(0)
	if !s.Take(1<<40) || !b.Unlimited() {
		t.Error("there is still a limit")
	}
}

// TestAtOnce checks that concurrent calls leave no units taken and give no units back twice.
func TestAtOnce(t *testing.T) {
	b := budget.New(50)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 1000 {
				s := b.Share(fmt.Sprint(i%4), fmt.Sprint(i%8))
				if s.Take(2) {
					s.Give(2)
				}
				s.Leave()
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d are used in the end", b.Used())
	}
}

// TestClientsFitTheMemory checks that a process with a memory limit of 64 MiB allows at most 512 client connections,
// regardless of the limit on open files.
func TestClientsFitTheMemory(t *testing.T) {
	withMemoryLimit(t, 64<<20)
	if got := budget.MaxClients(); got <= 0 || got > 512 {
		t.Errorf("there is room for %d", got)
	}
}

// TestMemoryParts checks that all uses of memory together get at most three quarters of the memory limit, and that
// bodies and connections get a quarter each.
func TestMemoryParts(t *testing.T) {
	for _, limit := range []int64{64 << 20, 1 << 30, 1 << 40} {
		withMemoryLimit(t, limit)
		var sum int64
		for m := budget.Bodies; m <= budget.AuthCache; m++ {
			if m.Limit() <= 0 {
				t.Errorf("use %d of memory has no room at a memory limit of %d bytes", m, limit)
			}
			sum += m.Limit()
		}
		if sum > limit/4*3 || budget.Bodies.Limit() != limit/4 || budget.Connections.Limit() != limit/4 {
			t.Errorf("all uses have %d of %d bytes, bodies %d, connections %d",
				sum, limit, budget.Bodies.Limit(), budget.Connections.Limit())
		}
	}
	withMemoryLimit(t, math.MaxInt64)
	if budget.Bodies.Limit() != 256<<20 || budget.Connections.Limit() != 0 {
		t.Errorf("without a memory limit, bodies have %d bytes, and connections %d",
			budget.Bodies.Limit(), budget.Connections.Limit())
	}
}

func withMemoryLimit(t *testing.T, limit int64) {
	before := debug.SetMemoryLimit(limit)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
}
