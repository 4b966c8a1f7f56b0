package issuance

import (
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestOneWorksOnAHost checks that a host that waits for an order is read first if the storage has changed. Two tasks
// for the same host could order twice.
func TestOneWorksOnAHost(t *testing.T) {
	m := New(zaptest.NewLogger(t))
	m.leads = true
	m.Want(map[string]*ir.Certificate{"a.example": {Automated: true, Origin: ir.ParseRef("Ingress/shop/web")}})
	h := m.hosts.Get("a.example")
	read := func() {
		t.Helper()
		if next, _ := m.reads.Pop(); next != h {
			t.Fatal("nobody looks for its certificate")
		}
		h.busy = true
		m.reads.Done(h)
		m.next(h)
	}
	read()
	m.onStorageEvent("certificates/one/a.example/a.example.crt")
	if _, ok := m.orders.Pop(); ok {
		t.Error("an issuer is asked before it is read")
	}
	read()
	first, _ := m.orders.Pop()
	if _, twice := m.orders.Pop(); first != h || twice {
		t.Error("no issuer is asked once")
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for n := range 10 {
		if _, ok := p.ready(now, true); !ok {
			t.Fatalf("order %d has to wait", n)
		}
		p.began(now)
	}
	if wait, ok := p.ready(now.Add(time.Second), true); ok || wait != 9*time.Second {
		t.Errorf("ready %v, wait %v", ok, wait)
	}
	p.refund()
	if _, ok := p.ready(now.Add(time.Second), true); !ok {
		t.Error("what was given back cannot be had")
	}
	if _, ok := p.ready(now.Add(10*time.Second), true); !ok {
		t.Error("it has to wait for too long")
	}
}

// TestPaceOfRenewals checks that orders for new names leave a part of the rate limit to renewals.
func TestPaceOfRenewals(t *testing.T) {
	var p pace
	now := time.Now()
	for n := range 8 {
		if _, ok := p.ready(now, false); !ok {
			t.Fatalf("order %d has to wait", n)
		}
		p.began(now)
	}
	if wait, ok := p.ready(now.Add(time.Second), false); ok || wait != 9*time.Second {
		t.Errorf("a new name is ready: %v, or has to wait for %v", ok, wait)
	}
	if _, ok := p.ready(now.Add(time.Second), true); !ok {
		t.Error("a renewal has to wait")
	}
}
