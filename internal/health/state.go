package health

import "iter"

// State is what the last round of checks found out about a backend.
type State struct {
	// Endpoints are all that were asked, Unhealthy those of them that are passed over.
	Endpoints, Unhealthy int
	// Address is one that is unhealthy, and Reason is how it failed last.
	Address, Reason string
}

// State returns that of a backend, or false if nobody checks it, or its first round has not ended.
func (c *Checker) State(id string) (State, bool) {
	c.mu.Lock()
	r := c.running[id]
	c.mu.Unlock()
	if r == nil || r.state.Load() == nil {
		return State{}, false
	}
	return *r.state.Load(), true
}

// States yields those of all backends.
func (c *Checker) States() iter.Seq2[string, State] {
	return func(yield func(string, State) bool) {
		c.mu.Lock()
		ids := make([]string, 0, len(c.running))
		for id := range c.running {
			ids = append(ids, id)
		}
		c.mu.Unlock()
		for _, id := range ids {
			if s, ok := c.State(id); ok && !yield(id, s) {
				return
			}
		}
	}
}

// tell makes what a round knows its state.
func (r *round) tell() {
	s := &State{Endpoints: len(r.known)}
	for address, k := range r.known {
		if k.healthy {
			continue
		}
		// Of several, always the same one.
		if s.Unhealthy++; s.Address == "" || address < s.Address {
			s.Address, s.Reason = address, k.reason
		}
	}
	r.state.Store(s)
}
