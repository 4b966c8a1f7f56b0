package turns_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/k8singress/k8singress/internal/process/turns"
)

// pop returns the next n values.
func pop(q *turns.Queue[string], n int) (all []string) {
	for range n {
		if value, ok := q.Pop(); ok {
			all = append(all, value)
		}
	}
	return all
}

// TestNamespacesTakeTurns checks that a namespace with thousands of values does not delay the first value of another
// namespace.
func TestNamespacesTakeTurns(t *testing.T) {
	q := turns.New[string](3, 3)
	for n := range 5000 {
		q.Push("large", fmt.Sprint("large-", n), true)
	}
	q.Push("small", "small-one", true)
	q.Push("small", "small-two", false)
	got := pop(q, 4)
	if want := []string{"large-0", "small-one", "large-1"}; !slices.Equal(got, want) {
		t.Errorf("turns are %v", got)
	}
	for _, value := range got {
		q.Done(value)
	}
	if got := pop(q, 1); got[0] != "small-two" || q.Len() != 4998 {
		t.Errorf("the next is %v, and %d wait", got, q.Len())
	}
}

// TestNamespaceHasItsShare checks that hanging work of one namespace leaves room for other namespaces, and that its
// next value runs when one has ended.
func TestNamespaceHasItsShare(t *testing.T) {
	q := turns.New[string](8, 4)
	for n := range 100 {
		q.Push("hanging", fmt.Sprint(n), true)
	}
	hanging := pop(q, 100)
	if len(hanging) != 4 {
		t.Fatalf("one namespace has %d of 8", len(hanging))
	}
	q.Push("other", "one", false)
	if got := pop(q, 2); len(got) != 1 || got[0] != "one" {
		t.Errorf("the other namespace has to wait: %v", got)
	}
	q.Done("one")
	q.Done(hanging[0])
	if got := pop(q, 2); len(got) != 1 || got[0] != "4" {
		t.Errorf("what comes next is %v", got)
	}
}

// TestTurnsAreKept checks that a namespace with occasional values gets its turn if one value runs at a time, even if
// other namespaces give back their turns.
func TestTurnsAreKept(t *testing.T) {
	q := turns.New[string](1, 1)
	for n := range 10 {
		q.Push("large", fmt.Sprint("large-", n), false)
	}
	q.Push("small", "small-0", false)
	next := func(want string) {
		t.Helper()
		if got := pop(q, 1); got[0] != want {
			t.Fatalf("the turn is that of %v, want %s", got, want)
		}
	}
	next("large-0")
	q.Done("large-0")
	next("small-0")
	q.Done("small-0")
	next("large-1")
	q.Done("large-1")
	q.Push("small", "small-1", false)
	next("small-1")
	q.GiveBack("small-1")
	q.Done("small-1")
	q.Push("small", "small-1", false)
	next("small-1")
}

func TestQueueForgets(t *testing.T) {
	q := turns.New[string](10, 10)
	for _, value := range []string{"1", "2", "2", "3"} {
		q.Push("a", value, false)
	}
	q.Remove("1")
	if got := pop(q, 1); got[0] != "2" {
		t.Errorf("the first is %v", got)
	}
	if all := q.Clear(); !slices.Equal(all, []string{"3"}) || len(pop(q, 1)) != 0 || q.Len() != 0 {
		t.Errorf("cleared %v, and %d are left", all, q.Len())
	}
	q.Push("b", "1", true)
	if got := pop(q, 2); !slices.Equal(got, []string{"1"}) {
		t.Errorf("it is %v", got)
	}
}

// TestOneWorksOnAValue checks that a value does not run twice at the same time: if it is pushed while it runs, it waits
// until Done.
func TestOneWorksOnAValue(t *testing.T) {
	q := turns.New[string](10, 10)
	q.Push("a", "1", false)
	pop(q, 1)
	q.Push("b", "1", false)
	if got := pop(q, 1); got != nil {
		t.Errorf("%v is worked on twice", got)
	}
	q.Done("1")
	if got := pop(q, 1); !slices.Equal(got, []string{"1"}) {
		t.Errorf("it does not come again: %v", got)
	}
	q.Push("a", "1", false)
	q.Remove("1")
	q.Done("1")
	if got := pop(q, 1); got != nil {
		t.Errorf("%v comes again", got)
	}
}

// value is a value in the model.
type value struct{ namespace, number int }

// model is a simple model with which the queue is compared.
type model struct {
	*turns.Queue[value]
	most, share      int
	waiting, running map[value]bool
	// passed counts, for each namespace, how many values of others were popped while it had a value that could run.
	passed map[int]int
}

// free reports whether another value of a namespace may run.
func (m *model) free(namespace int) bool {
	held := 0
	for v := range m.running {
		if v.namespace == namespace {
			held++
		}
	}
	return len(m.running) < m.most && held < m.share
}

func (m *model) pop(t *rapid.T) {
	could := map[int]bool{}
	for v := range m.waiting {
		if m.free(v.namespace) {
			could[v.namespace] = true
		}
	}
	got, ok := m.Pop()
	if ok != (len(could) > 0) || ok && !m.waiting[got] {
		t.Fatalf("%v comes (%v), with %v waiting and %v at work", got, ok, m.waiting, m.running)
	}
	if !ok {
		return
	}
	delete(m.waiting, got)
	m.running[got] = true
	for namespace := range 4 {
		if m.passed[namespace]++; namespace == got.namespace || !could[namespace] {
			m.passed[namespace] = 0
		}
		if m.passed[namespace] > 4 {
			t.Fatalf("the namespace %d waits for ever", namespace)
		}
	}
}

// TestAgainstModel checks with random operations that no limit is exceeded, that no value is lost, and that a namespace
// with values waits for at most one turn of each other namespace.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			most: rapid.IntRange(1, 5).Draw(t, "most"), share: rapid.IntRange(1, 3).Draw(t, "share"),
			waiting: map[value]bool{}, running: map[value]bool{}, passed: map[int]int{},
		}
		m.Queue = turns.New[value](m.most, m.share)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			v := value{rapid.IntRange(0, 3).Draw(t, "namespace"), rapid.IntRange(0, 5).Draw(t, "number")}
			switch step := rapid.IntRange(0, 3).Draw(t, "step"); {
			case step == 0 && !m.running[v]:
				m.Push(fmt.Sprint(v.namespace), v, rapid.Bool().Draw(t, "first"))
				m.waiting[v] = true
			case step == 1 && !m.running[v]:
				m.Remove(v)
				delete(m.waiting, v)
			case step == 2 && m.running[v]:
				m.Done(v)
				delete(m.running, v)
			case step == 3:
				m.pop(t)
			}
			if m.Len() != len(m.waiting) {
				t.Fatalf("%d wait, want %d", m.Len(), len(m.waiting))
			}
		}
	})
}
