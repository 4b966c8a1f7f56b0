package status

import (
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestMemoryDoesNotGrow checks that the records of deleted objects are removed. Otherwise they would fill the memory of
// a replica that is the leader for a long time.
func TestMemoryDoesNotGrow(t *testing.T) {
	m := newMemory()
	for _, name := range []string{"one", "two", "three"} {
		ref := ir.Ref{Kind: "Ingress", Namespace: "a", Name: name}
		event := &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
		m.setPlan(map[ir.Ref]*Change{ref: {Version: "1", Status: "192.0.2.1", Events: []*eventsv1.Event{event}}})
		c, done := m.change(ref)
		if c == nil || done {
			t.Fatalf("a new object: %v, done %v", c, done)
		}
		m.wroteStatus(ref, c)
		m.wroteEvent("a/" + name)
		m.setPlan(m.plan)
		if _, done := m.change(ref); !done || !m.hasEvent("a/"+name) {
			t.Error("what was written is forgotten")
		}
		if m.status.Len() != 1 || len(m.events) != 1 {
			t.Errorf("%d objects and %d Events are remembered", m.status.Len(), len(m.events))
		}
	}
	m.setPlan(nil)
	if m.status.Len() != 0 || len(m.events) != 0 {
		t.Errorf("%d objects and %d Events are remembered", m.status.Len(), len(m.events))
	}
}

func TestPlanContainsOnlyChanges(t *testing.T) {
	m := newMemory()
	ref := ir.Ref{Kind: "Ingress", Namespace: "a", Name: "web"}
	plan := func(version, address string, events ...string) map[ir.Ref]*Change {
		c := &Change{Version: version, Status: address}
		for _, name := range events {
			c.Events = append(c.Events, &eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}})
		}
		return map[ir.Ref]*Change{ref: c}
	}
	for i, step := range []struct {
		plan map[ir.Ref]*Change
		news int
	}{
		{plan("1", "192.0.2.1"), 1}, {plan("1", "192.0.2.1"), 0}, {plan("1", "192.0.2.2"), 1},
		{plan("2", "192.0.2.2"), 1},
		{plan("2", "192.0.2.2", "one"), 1}, {plan("2", "192.0.2.2", "one"), 0}, {plan("2", "192.0.2.2", "two"), 1},
		{nil, 0}, {plan("2", "192.0.2.2", "two"), 1},
	} {
		if news := m.setPlan(step.plan); len(news) != step.news {
			t.Errorf("step %d: %v is new", i, news)
		}
	}
	m.newTerm()
	if news := m.setPlan(plan("2", "192.0.2.2", "two")); len(news) != 1 {
		t.Errorf("at the start of a term %v is new", news)
	}
}
