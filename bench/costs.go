package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// mostAllocations is how many a request may make, and mostIdle how many bytes a connection may hold between two
	// requests.
	mostAllocations, mostIdle = 2, 12 << 10
	// idleConnections is how many there are when their memory is measured.
	idleConnections = 2000
	// collections are enough for stacks to shrink, and for pools to be empty.
	collections = 5
)

// costs are what a Caddy takes for requests and connections.
type costs struct {
	*contestant
	// allocations and bytes are those of one request, and idle the bytes in use for one connection.
	allocations, bytes, idle float64
}

// compareCosts has Caddy's runtime count, with k8singress and without, and returns the bars.
func compareCosts(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	backend, err := startBackend()
	if err != nil {
		return nil, err
	}
	defer backend.stop()
	s := site{o.binary, filepath.Join(folder, "costs"), backend.address}
	ours, err := startOurs(ctx, s, "ours", applications{hosts: 1, endpoints: 1, backend: s.backend})
	defer ours.stop()
	if err != nil {
		return nil, err
	}
	plain, err := startPlain(ctx, s, "plain", 1)
	defer plain.stop()
	if err != nil {
		return nil, err
	}
	both := [2]*costs{{contestant: ours}, {contestant: plain}}
	for _, c := range both {
		if err := errors.Join(c.resume(), c.count(ctx, o), c.hold(ctx), c.pause()); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return both[0].bars(), writeCosts(out, both)
}

// count sends requests for a short and for a long time, and divides what has been allocated in the long one beyond the
// short one by the requests beyond. So neither connections count that are made, nor asking for the figures.
func (c *costs) count(ctx context.Context, o options) error {
	var said [3]runtimeFigures
	var requests [3]int64
	for i, duration := range []time.Duration{o.duration / 3, o.duration / 3, 2 * o.duration} {
		l := c.load(o, 1)
		l.warmUp, l.duration = 0, duration
		t := l.count(ctx)
		requests[i] = int64(len(t.latencies))
		if err := errors.Join(ctx.Err(), t.first); err != nil {
			return err
		}
		var err error
		if said[i], err = c.runtimeSays(ctx, "?debug=1"); err != nil {
			return err
		}
	}
	beyond := float64(requests[2] - requests[1])
	if beyond <= 0 {
		return errors.New("no more requests are answered in a longer time: this machine has no time for it")
	}
	c.allocations = float64(said[2].mallocs-2*said[1].mallocs+said[0].mallocs) / beyond
	c.bytes = float64(said[2].total-2*said[1].total+said[0].total) / beyond
	return nil
}

// hold opens connections, has a request answered on each, and leaves them idle.
func (c *costs) hold(ctx context.Context) error {
	before, err := c.inUse(ctx)
	if err != nil {
		return err
	}
	for range idleConnections {
		connection, err := load{address: c.http, body: answerBody}.open(ctx, hostName(1))
		if err != nil {
			return err
		}
		defer connection.Close()
	}
	after, err := c.inUse(ctx)
	c.idle = float64(after-before) / idleConnections
	return err
}

// inUse is how many bytes the heap and the stacks have after collections of garbage.
func (c *costs) inUse(ctx context.Context) (int64, error) {
	var said runtimeFigures
	for range collections {
		var err error
		if said, err = c.runtimeSays(ctx, "?gc=1&debug=1"); err != nil {
			return 0, err
		}
	}
	return said.heapInUse + said.stacks, nil
}

// runtimeFigures are some of what Go's runtime says of a process: what has been allocated so far in number and bytes,
// and what is in use.
type runtimeFigures struct {
	mallocs, total, heap, heapInUse, stacks int64
}

// runtimeSays asks for them. The query says whether garbage is collected before.
func (c *contestant) runtimeSays(ctx context.Context, query string) (runtimeFigures, error) {
	text, err := c.ask(ctx, "/debug/pprof/heap"+query)
	if err != nil {
		return runtimeFigures{}, err
	}
	return readRuntimeFigures(text)
}

func readRuntimeFigures(text string) (runtimeFigures, error) {
	var f runtimeFigures
	for _, each := range []struct {
		name string
		into *int64
	}{{"Mallocs", &f.mallocs}, {"TotalAlloc", &f.total}, {"HeapAlloc", &f.heap}, {"HeapInuse", &f.heapInUse},
		{"Stack", &f.stacks}} {
		_, rest, _ := strings.Cut(text, "\n# "+each.name+" = ")
		line, _, _ := strings.Cut(rest, "\n")
		number, _, _ := strings.Cut(line, " ")
		var err error
		if *each.into, err = strconv.ParseInt(number, 10, 64); err != nil {
			return f, fmt.Errorf("the runtime says nothing of %s: %w", each.name, err)
		}
	}
	return f, nil
}

// bars are those that k8singress is held to.
func (c *costs) bars() []bar {
	requests := bar{
		Work: "allocations of one request", Bar: fmt.Sprintf("at most %d", mostAllocations),
		Measured: fmt.Sprintf("%.2f", c.allocations),
	}
	idle := bar{Work: "memory of an idle connection", Bar: "at most " + kilobytes(mostIdle),
		Measured: kilobytes(c.idle)}
	return []bar{held(requests, c.allocations <= mostAllocations), held(idle, c.idle <= mostIdle)}
}

func kilobytes(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/(1<<10)) }

// writeCosts prints the figures as Markdown.
func writeCosts(out io.Writer, both [2]*costs) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## Allocations and idle connections\n\nWhat the runtime of the process counts: allocations while short "+
			"GETs are answered, by their number; and heap and stacks in use with %s idle connections and without, "+
			"after collections of garbage.\n\n"+
			"| | k8singress | plain Caddy |\n| --- | ---: | ---: |\n", thousands(idleConnections))
	for _, each := range []struct {
		name string
		of   func(*costs) string
	}{
		{"allocations of one request", func(c *costs) string { return fmt.Sprintf("%.2f", c.allocations) }},
		{"bytes allocated for one request", func(c *costs) string { return thousands(c.bytes) }},
		{"memory of an idle connection", func(c *costs) string { return kilobytes(c.idle) }},
	} {
		text.WriteString(row(each.name, each.of(both[0]), each.of(both[1])))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
