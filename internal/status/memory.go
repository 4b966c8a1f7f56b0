package status

import (
	"sync"

	"github.com/k8singress/k8singress/internal/ir"
)

// memory holds the newest plan, and which of its writes are done.
type memory struct {
	mu     sync.Mutex
	plan   map[ir.Ref]*Change
	status map[ir.Ref]writtenStatus
	events map[string]struct{}
}

// writtenStatus is what was written to an object, and the version that was known of it then: until the object comes
// back changed, the snapshot does not know of the write.
type writtenStatus struct {
	version string
	patch   string
}

func newMemory() *memory {
	return &memory{status: map[ir.Ref]writtenStatus{}, events: map[string]struct{}{}}
}

// newTerm forgets what was planned and written to objects: while another replica led, it may have written over that.
func (m *memory) newTerm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plan, m.status = nil, map[ir.Ref]writtenStatus{}
}

// setPlan takes the newest plan, forgets what it does not ask for, and returns the objects of which it says something
// else than the plan before. The others are written already, or wait for another try.
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

// forget drops what the plan does not ask for.
func (m *memory) forget() {
	for ref, w := range m.status {
		if c := m.plan[ref]; c == nil || c.Status == "" || c.Version != w.version {
			delete(m.status, ref)
		}
	}
	asked := map[string]struct{}{}
	for _, c := range m.plan {
		for _, event := range c.Events {
			if _, ok := m.events[event.Namespace+"/"+event.Name]; ok {
				asked[event.Namespace+"/"+event.Name] = struct{}{}
			}
		}
	}
	m.events = asked
}

// change returns what the newest plan says of an object, or nil, and whether its status needs no write.
func (m *memory) change(ref ir.Ref) (*Change, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.plan[ref]
	if c == nil {
		return nil, false
	}
	return c, c.Status == "" || m.status[ref] == writtenStatus{c.Version, c.Status}
}

// wroteStatus notes that the status of a change was written.
func (m *memory) wroteStatus(ref ir.Ref, c *Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status[ref] = writtenStatus{c.Version, c.Status}
}

// hasEvent says whether an Event is known to be written.
func (m *memory) hasEvent(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.events[name]
	return ok
}

// wroteEvent notes that an Event was written, by this replica or another one.
func (m *memory) wroteEvent(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events[name] = struct{}{}
}
