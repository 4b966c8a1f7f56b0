package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// pair is two contestants with the same number of hosts.
type pair struct {
	hosts       int
	plain, ours *contestant
}

// manyEndpoints is the number of endpoints of the first host of one contestant.
const manyEndpoints = 1000

// field holds all contestants. All processes run during the whole benchmark, but only the measured one is not paused.
type field struct {
	pairs []pair
	// many has the hosts of the first pair, and manyEndpoints endpoints for the first host. It is nil if the machine
	// does not have so many addresses.
	many *contestant
}

// startField starts all contestants. The caller must stop the result even if there is an error.
func startField(ctx context.Context, s site, hosts []int) (*field, error) {
	f := &field{}
	for _, n := range hosts {
		p := pair{hosts: n}
		var err error
		p.plain, err = startPlain(ctx, s, fmt.Sprintf("plain-%d", n), n)
		if err == nil {
			p.ours, err = startOurs(ctx, s, fmt.Sprintf("ours-%d", n),
				applications{hosts: n, endpoints: 1, backend: s.backend})
		}
		f.pairs = append(f.pairs, p)
		if err != nil {
			return f, err
		}
	}
	var err error
	if runtime.GOOS == "linux" {
		f.many, err = startOurs(ctx, s, "ours-endpoints",
			applications{hosts: hosts[0], endpoints: manyEndpoints, backend: s.backend})
	}
	return f, err
}

// all returns the contestants in the order of a round. Contestants that are compared are next to each other.
func (f *field) all() []*contestant {
	var all []*contestant
	for i, p := range f.pairs {
		all = append(all, p.plain, p.ours)
		if i == 0 {
			all = append(all, f.many)
		}
	}
	return installed(all...)
}

func (f *field) stop() {
	for _, c := range f.all() {
		c.stop()
	}
}

// measure runs each contestant once in each round, so that other work of the machine affects all of them.
func (f *field) measure(ctx context.Context, o options) error {
	for range o.rounds {
		for _, c := range f.all() {
			if err := c.measure(ctx, o); err != nil {
				return err
			}
		}
	}
	for _, c := range f.all() {
		if err := c.finish(ctx); err != nil {
			return err
		}
		if err := c.pause(); err != nil {
			return err
		}
	}
	return nil
}

// largest returns the pair with the most hosts.
func (f *field) largest() pair { return f.pairs[len(f.pairs)-1] }

// change changes one Ingress repeatedly, with the largest number of hosts. It returns the times from each change until
// a request uses it.
func (f *field) change(ctx context.Context, changes int) ([]time.Duration, error) {
	c := f.largest().ours
	if err := c.resume(); err != nil {
		return nil, err
	}
	var times []time.Duration
	for number := range changes {
		took, err := c.change(ctx, number)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, c.pause()
}
