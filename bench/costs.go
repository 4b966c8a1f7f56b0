package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	// maxAllocations is the maximum number of allocations per request. maxIdle is the maximum memory of an idle
	// connection, in bytes.
	maxAllocations, maxIdle = 2, 12 << 10
	// idleConnections is the number of idle connections for which the memory is measured.
	idleConnections = 2000
	// collections is the number of garbage collections that are enough to shrink stacks and to empty pools.
	collections = 5
)

// costs measures the allocations and the memory of one Caddy.
type costs struct {
	*contestant
	// allocations and bytes are the allocations of one request. idle is the number of bytes in use for one idle
	// connection.
	allocations, bytes, idle float64
}

// compareCosts reads the figures of the Go runtime with k8singress and without it, prints them, and returns the bars.
func compareCosts(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	s = s.in("costs")
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

// count sends requests for a short and for a long time. It divides the additional allocations of the long load by its
// additional requests, so that neither new connections nor the queries of the figures are counted.
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
		return errors.New("a longer load has no more responses: this machine is too busy")
	}
	c.allocations = float64(said[2].mallocs-2*said[1].mallocs+said[0].mallocs) / beyond
	c.bytes = float64(said[2].total-2*said[1].total+said[0].total) / beyond
	return nil
}

// hold opens connections, sends one request on each, and leaves them idle.
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

// inUse returns the size of the heap and of the stacks after several garbage collections, in bytes.
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

// runtimeFigures holds figures of the Go runtime: the number and bytes of all allocations so far, and the bytes in use.
type runtimeFigures struct {
	mallocs, total, heap, heapInUse, stacks int64
}

// runtimeSays reads the figures of the process. The query determines whether a garbage collection runs first.
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
			return f, fmt.Errorf("the runtime has no figure %s: %w", each.name, err)
		}
	}
	return f, nil
}

// bars returns the bars for allocations and for idle connections.
func (c *costs) bars() []bar {
	requests := bar{
		Work: "allocations of one request", Bar: fmt.Sprintf("at most %d", maxAllocations),
		Measured: fmt.Sprintf("%.2f", c.allocations),
	}
	idle := bar{Work: "memory of an idle connection", Bar: "at most " + kilobytes(maxIdle),
		Measured: kilobytes(c.idle)}
	return []bar{held(requests, c.allocations <= maxAllocations), held(idle, c.idle <= maxIdle)}
}

func kilobytes(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/(1<<10)) }

// writeCosts prints the figures as Markdown.
func writeCosts(out io.Writer, both [2]*costs) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## Allocations and idle connections\n\nCounted by the runtime of the process: allocations per short GET, "+
			"and the heap and stacks in use with %s idle connections and without them, after garbage "+
			"collections.\n\n"+
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
