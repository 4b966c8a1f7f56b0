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
	// fullRun is the maximum time for translation, rendering and apply of all Ingresses. changeRun is the maximum time
	// after a change of one Ingress.
	fullRun, changeRun = 2 * time.Second, 5 * time.Millisecond
	// maxAnnotatedMemory is the maximum ratio of the memory with annotations to the memory without them.
	maxAnnotatedMemory = 1.30
	// applyTimes is the name of the controller's metric for the duration of translation, rendering and apply.
	applyTimes = "k8singress_apply_duration_seconds"
)

// eight is a set of annotations that are common in practice.
var eight = annotated(`force-ssl-redirect: "false"`, `enable-cors: "true"`, "rewrite-target: /app",
	"proxy-body-size: 8m",
	`proxy-connect-timeout: "2"`, `proxy-read-timeout: "20"`, `allowlist-source-range: "10.0.0.0/8,127.0.0.0/8"`,
	`limit-rps: "100000"`)

// many compares two contestants with the same number of Ingresses. The first one's Ingresses have annotations.
type many struct {
	options options
	site    site
	// what says which annotations each Ingress has. annotations are used in turn, and more contains the manifests of
	// objects that they need.
	what        string
	annotations turns
	more        string
	both        [2]*contestant
	// full holds the duration of the first run. processor holds the processor time of the process until it was ready.
	// Both are in nanoseconds.
	full, processor series
	memory, heap    series
	// changed holds the duration of each run after a change of one Ingress, in nanoseconds.
	changed []float64
}

// compareAnnotated measures the cost of annotations with many Ingresses, prints the figures, and returns the bars.
func compareAnnotated(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	m := &many{options: o, site: s.in("annotated"),
		what: "8 annotations", annotations: turns{eight}}
	defer m.stop()
	if err := m.measure(ctx); err != nil {
		return nil, err
	}
	return append(m.timeBars(), m.heapBar()), m.write(out)
}

// measure starts both sides in each round, and then changes one Ingress repeatedly.
func (m *many) measure(ctx context.Context) error {
	for round := range m.options.rounds {
		if err := inTurn(round, func(side int) error { return m.start(ctx, side, round) }); err != nil {
			return err
		}
	}
	return m.change(ctx)
}

func (m *many) stop() {
	for _, c := range installed(m.both[:]...) {
		c.stop()
	}
}

// hosts returns the number of Ingresses.
func (m *many) hosts() int { return m.options.hosts[len(m.options.hosts)-1] }

// start starts one side, and records the duration of its first run, its processor time and its memory.
func (m *many) start(ctx context.Context, side, round int) error {
	if c := m.both[side]; c != nil {
		c.stop()
	}
	a := applications{hosts: m.hosts(), endpoints: 1, backend: m.site.backend}
	if side == 0 {
		a.annotations, a.more = m.annotations, m.more
	}
	c, err := startOurs(ctx, m.site, fmt.Sprintf("many-%d-%d", side, round), a)
	if m.both[side] = c; err != nil {
		return err
	}
	spent, err := c.process.processorTime()
	if err != nil {
		return err
	}
	heap, err := c.liveHeap(ctx)
	if err != nil {
		return err
	}
	took, err := c.runs(ctx)
	m.full.add(side, took)
	m.processor.add(side, float64(spent))
	m.memory.add(side, float64(c.memory))
	m.heap.add(side, float64(heap))
	return errors.Join(err, c.pause())
}

// runs returns the total time that the controller has spent in translation, rendering and apply, in nanoseconds. The
// contestant is not paused when runs returns.
func (c *contestant) runs(ctx context.Context) (float64, error) {
	if err := c.resume(); err != nil {
		return 0, err
	}
	took, err := c.metrics(ctx, applyTimes+"_sum")
	if err != nil {
		return 0, err
	}
	return took[0] * float64(time.Second), nil
}

// metrics returns the values of metrics that have no labels.
func (c *contestant) metrics(ctx context.Context, names ...string) ([]float64, error) {
	text, err := c.ask(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	var values []float64
	for _, name := range names {
		_, rest, _ := strings.Cut(text, "\n"+name+" ")
		line, _, _ := strings.Cut(rest, "\n")
		value, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, fmt.Errorf("the metric %s: %w", name, err)
		}
		values = append(values, value)
	}
	return values, nil
}

// change changes one Ingress with annotations repeatedly, and records the duration of each run.
func (m *many) change(ctx context.Context) error {
	c := m.both[0]
	before, err := c.runs(ctx)
	for number := 0; number < m.options.changes && err == nil; number++ {
		if _, err = c.change(ctx, number); err != nil {
			return err
		}
		var after float64
		after, err = c.runs(ctx)
		m.changed = append(m.changed, after-before)
		before = after
	}
	return err
}

// work describes the objects.
func (m *many) work() string {
	return fmt.Sprintf("%s Ingresses with %s each", thousands(float64(m.hosts())), m.what)
}

// timeBars returns the bars for the duration of the first run, and of the run after a change.
func (m *many) timeBars() []bar {
	full := bar{Work: m.work() + ": translation, rendering and apply", Bar: "under " + fullRun.String(),
		Measured: duration(m.full.median(0))}
	full.Measured += ", in a process that has had " + duration(m.processor.median(0)) +
		" of the processors with all else until it was ready"
	one := bar{Work: m.work() + ": the same for one changed Ingress", Bar: "under " + changeRun.String(),
		Measured: duration(middle(m.changed))}
	return []bar{
		held(full, m.full.median(0) < float64(fullRun)), held(one, middle(m.changed) < float64(changeRun)),
	}
}

// heapBar returns the bar for the memory.
func (m *many) heapBar() bar {
	return m.heap.atMost(m.work()+": live heap, against no annotations", maxAnnotatedMemory)
}

// write prints the figures as Markdown.
func (m *many) write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## %s Ingresses with annotations\n\nMedians of %d starts in turn, and of %d changes of one Ingress. A "+
			"run is translation, rendering and apply, as the controller's metric says.\n\n| | %s each | "+
			"none | ratio |\n| --- | ---: | ---: | ---: |\n",
		thousands(float64(m.hosts())), m.options.rounds, len(m.changed), m.what)
	for _, each := range []struct {
		name string
		of   *series
		unit func(float64) string
	}{
		{"first run", &m.full, duration}, {"processor time until ready", &m.processor, duration},
		{"memory when ready", &m.memory, megabytesOf}, {"live heap", &m.heap, megabytesOf},
	} {
		text.WriteString(row(each.name, each.unit(each.of.median(0)), each.unit(each.of.median(1)),
			fmt.Sprintf("%.2f", each.of.ratio())))
	}
	text.WriteString(row("run after a change of one", duration(middle(m.changed)), "", ""))
	_, err := io.WriteString(out, text.String())
	return err
}
