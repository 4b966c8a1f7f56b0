package issuance

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/k8singress/k8singress/internal/ir"
)

func hostIn(namespace, name string) *host {
	return newHost(name, ir.Ref{Kind: "Ingress", Namespace: namespace, Name: name})
}

// A namespace with thousands of hosts does not hold up the first one of another.
func TestNamespacesTakeTurns(t *testing.T) {
	q := newQueue(3, 3)
	for n := range 5000 {
		q.push(hostIn("large", fmt.Sprintf("h%d.example", n)), true)
	}
	q.push(hostIn("small", "one.example"), true)
	q.push(hostIn("small", "two.example"), false)
	var got []string
	for range 4 {
		if h := q.pop(); h != nil {
			got = append(got, h.origin.Namespace)
		}
	}
	if fmt.Sprint(got) != "[large small large]" {
		t.Errorf("turns are %v", got)
	}
	q.running = 0
	if h := q.pop(); h.name != "two.example" {
		t.Errorf("the next is %s", h.name)
	}
	if q.length != 4998 {
		t.Errorf("%d wait", q.length)
	}
}

// Orders of one namespace that hang leave room for those of others, and it goes on with the next when one has ended.
func TestNamespaceHasItsShare(t *testing.T) {
	q := newQueue(maxOrders, ordersPerNamespace)
	for n := range 100 {
		q.push(hostIn("hanging", fmt.Sprintf("h%d.example", n)), true)
	}
	var hanging []*host
	for h := q.pop(); h != nil; h = q.pop() {
		hanging = append(hanging, h)
	}
	if len(hanging) != maxOrders/2 {
		t.Fatalf("one namespace has %d of %d", len(hanging), maxOrders)
	}
	other := hostIn("other", "one.example")
	q.push(other, false)
	if h := q.pop(); h != other || q.pop() != nil {
		t.Errorf("the other namespace has to wait: %v", h)
	}
	q.done(other)
	// A host that went to another namespace in the meantime gives back the place that it had.
	hanging[0].origin.Namespace = "other"
	q.done(hanging[0])
	if h := q.pop(); h == nil || h.holds != "hanging" || q.pop() != nil {
		t.Errorf("what comes next is %v", h)
	}
	for h := range q.held {
		if h != "hanging" {
			t.Errorf("%s still holds %d", h, q.held[h])
		}
	}
}

func TestQueueForgets(t *testing.T) {
	q := newQueue(10, 10)
	first, second, third := hostIn("a", "1.example"), hostIn("a", "2.example"), hostIn("a", "3.example")
	for _, h := range []*host{first, second, second, third} {
		q.push(h, false)
	}
	q.drop(first)
	if h := q.pop(); h != second {
		t.Errorf("the first is %v", h)
	}
	if all := q.clear(); len(all) != 1 || all[0] != third || q.pop() != nil || q.length != 0 {
		t.Errorf("cleared %v, and %d are left", all, q.length)
	}
	// What was dropped and comes again waits once.
	q.push(first, true)
	if h := q.pop(); h != first || q.pop() != nil {
		t.Errorf("it is %v", h)
	}
}

// A host that waits for an issuer, and of which the storage has something new, is read first: two at work on it would ask the
// issuer twice.
func TestOneWorksOnAHost(t *testing.T) {
	m := New(zaptest.NewLogger(t))
	m.leads = true
	m.Want(map[string]*ir.Certificate{"a.example": {Automated: true, Origin: ir.ParseRef("Ingress/shop/web")}})
	h := m.hosts["a.example"]
	read := func() {
		t.Helper()
		if m.reads.pop() != h {
			t.Fatal("nobody looks for its certificate")
		}
		h.busy = true
		m.next(h)
	}
	read()
	m.onStorageEvent("certificates/one/a.example/a.example.crt")
	if m.orders.pop() != nil {
		t.Error("an issuer is asked before it is read")
	}
	read()
	if m.orders.pop() != h || m.orders.pop() != nil {
		t.Error("no issuer is asked once")
	}
}

func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for n := range 10 {
		if _, ok := p.ready(now); !ok {
			t.Fatalf("order %d has to wait", n)
		}
		p.began(now)
	}
	if wait, ok := p.ready(now.Add(time.Second)); ok || wait != 9*time.Second {
		t.Errorf("ready %v, wait %v", ok, wait)
	}
	p.refund()
	if _, ok := p.ready(now.Add(time.Second)); !ok {
		t.Error("what was given back cannot be had")
	}
	if _, ok := p.ready(now.Add(10 * time.Second)); !ok {
		t.Error("it has to wait for too long")
	}
}
