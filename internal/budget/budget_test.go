package budget_test

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/k8singress/k8singress/internal/budget"
)

// fill takes as much as there is.
func fill(s *budget.Share) (taken int64) {
	for s.Take(1) {
		taken++
	}
	return taken
}

// TestRoomForOneMore: however many namespaces take all that they can get, the next one gets something, and so does another port of a
// namespace.
func TestRoomForOneMore(t *testing.T) {
	b := budget.New(9000)
	if first, second := fill(b.Share("a", "tcp/1")), fill(b.Share("a", "tcp/2")); second == 0 || second > first {
		t.Errorf("the first port of a namespace gets %d, and the second one %d", first, second)
	}
	b = budget.New(9000)
	var before int64 = 9000
	for i := range 5 {
		got := fill(b.Share(fmt.Sprint("team-", i), "tcp/1"))
		if got == 0 || got > before {
			t.Fatalf("namespace %d gets %d, after one that got %d", i, got, before)
		}
		before = got
	}
	if b.Used() >= b.Most() {
		t.Errorf("%d of %d are used", b.Used(), b.Most())
	}
}

// TestOneAlone gets more than half.
func TestOneAlone(t *testing.T) {
	if got := fill(budget.New(1000).Share("a", "tcp/1")); got < 500 || got > 700 {
		t.Errorf("it gets %d of 1000", got)
	}
}

// TestGiven: what is given back can be taken again, by anyone, and a share is one and the same.
func TestGiven(t *testing.T) {
	b := budget.New(100)
	s := b.Share("a", "udp/53")
	taken := fill(s)
	b.Share("a", "udp/53").Give(taken)
	if b.Used() != 0 || fill(b.Share("b", "udp/53")) != taken {
		t.Errorf("%d are used, and another one does not get %d", b.Used(), taken)
	}
}

// TestAtOnce: calls from many goroutines leave neither debts nor leaks.
func TestAtOnce(t *testing.T) {
	b := budget.New(50)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			s := b.Share(fmt.Sprint(i%4), fmt.Sprint(i))
			for range 1000 {
				if s.Take(2) {
					s.Give(2)
				}
			}
		})
	}
	all.Wait()
	if b.Used() != 0 {
		t.Errorf("%d are used in the end", b.Used())
	}
}

// TestClientsFitTheMemory: a process that may have 64 MiB has room for 1,024 connections of clients, however many files it may open.
func TestClientsFitTheMemory(t *testing.T) {
	before := debug.SetMemoryLimit(64 << 20)
	defer debug.SetMemoryLimit(before)
	if got := budget.ForClients(); got <= 0 || got > 1024 {
		t.Errorf("there is room for %d", got)
	}
}
