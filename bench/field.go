package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"
)

// pair is the two contestants with the same number of hosts.
type pair struct {
	hosts       int
	plain, ours *contestant
}

// field is all contestants. They run all the time, and all but the one that is measured are paused.
type field struct{ pairs []pair }

// startField starts all of them. What it returns is to be stopped even when there is an error.
func startField(ctx context.Context, o options, folder, backend string) (*field, error) {
	f := &field{}
	for _, hosts := range o.hosts {
		p := pair{hosts: hosts}
		var err error
		p.plain, err = startPlain(ctx, o, filepath.Join(folder, fmt.Sprintf("plain-%d", hosts)), hosts, backend)
		if err == nil {
			p.ours, err = startOurs(ctx, o, filepath.Join(folder, fmt.Sprintf("ours-%d", hosts)), hosts, backend)
		}
		f.pairs = append(f.pairs, p)
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

func (f *field) all() []*contestant {
	var all []*contestant
	for _, p := range f.pairs {
		for _, c := range []*contestant{p.plain, p.ours} {
			if c != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

func (f *field) stop() {
	for _, c := range f.all() {
		c.stop()
	}
}

// measure lets each contestant run once in each round, so that what else the machine does meets all of them.
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
		if err := c.process.pause(); err != nil {
			return err
		}
	}
	return nil
}

// largest is the pair with the most hosts.
func (f *field) largest() pair {
	largest := f.pairs[0]
	for _, p := range f.pairs {
		if p.hosts > largest.hosts {
			largest = p
		}
	}
	return largest
}

// change changes one Ingress a number of times, at the largest number of hosts, and returns the times from each change
// until a request is served by it.
func (f *field) change(ctx context.Context, changes int) ([]time.Duration, error) {
	c := f.largest().ours
	if err := c.process.resume(); err != nil {
		return nil, err
	}
	var times []time.Duration
	for number := range changes {
		begin := time.Now()
		if err := writeChange(c.manifests(), number); err != nil {
			return nil, err
		}
		url := fmt.Sprintf("http://%s/change-%d", c.http, number)
		served := func(ctx context.Context) bool {
			response, err := get(ctx, url, changingHost)
			return err == nil && response.Body.Close() == nil
		}
		if err := c.process.await(ctx, served); err != nil {
			return nil, fmt.Errorf("waiting for change %d: %w", number, err)
		}
		times = append(times, time.Since(begin))
	}
	return times, c.process.pause()
}
