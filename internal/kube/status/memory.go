package status

import (
	"sync"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/shrinking"
)

// memory holds the newest plan of status updates and Events, and records which of these writes are done.
type memory struct {
	mu     sync.Mutex
	plan   map[ir.Ref]*Change
	status shrinking.Map[ir.Ref, writtenStatus]
	events map[string]struct{}
}

// writtenStatus is the status that this replica has written to an object, and the resourceVersion that the object had
// in the snapshot at that time. While the snapshot still contains this resourceVersion, the watch has not delivered the
// written status yet, and the same status need not be written again.
type writtenStatus struct {
	version string
	patch   string
}

func newMemory() *memory {
	return &memory{events: map[string]struct{}{}}
}

// newTerm is called when this replica becomes the leader. It clears the plan and the record of written statuses,
// because another replica may have overwritten the statuses while it was the leader.
func (m *memory) newTerm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan = nil
	m.status.Clear()
}

// setPlan stores a new plan and returns the objects whose planned change differs from the previous plan. The changes of
// all other objects have already been written or wait for a retry.
func (m *memory) setPlan(plan map[ir.Ref]*Change) []ir.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	var news []ir.Ref
	for ref, c := range plan {
		if old := m.plan[ref]; old == nil || !c.equal(old) {
			news = append(news, ref)
		}
	}
	m.plan = plan
	m.forget()
	return news
}

// forget removes the records of written statuses and Events that are not in the current plan.
func (m *memory) forget() {
	for ref, w := range m.status.All() {
		if c := m.plan[ref]; c == nil || c.Status == "" || c.Version != w.version {
			m.status.Delete(ref)
		}
	}
	needed := map[string]struct{}{}
	for _, c := range m.plan {
		for _, event := range c.Events {
			if _, ok := m.events[event.Namespace+"/"+event.Name]; ok {
				needed[event.Namespace+"/"+event.Name] = struct{}{}
			}
		}
	}
	m.events = needed
}

// change returns the planned change for an object, or nil if no change is planned. The second result is true if the
// status of the object does not have to be written, because it is unchanged or was already written.
func (m *memory) change(ref ir.Ref) (*Change, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.plan[ref]
	if c == nil {
		return nil, false
	}
	return c, c.Status == "" || m.status.Get(ref) == writtenStatus{c.Version, c.Status}
}

// wroteStatus records that the status of a change was written.
func (m *memory) wroteStatus(ref ir.Ref, c *Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status.Set(ref, writtenStatus{c.Version, c.Status})
}

// hasEvent reports whether this process knows that the Event with the given namespace and name already exists.
func (m *memory) hasEvent(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[name]
	return ok
}

// wroteEvent records that an Event was written, by this replica or another one.
func (m *memory) wroteEvent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events[name] = struct{}{}
}
