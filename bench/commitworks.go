package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
)

// workDuel sends each kind of request to this checkout's Caddy and to the Caddy of another commit in turn.
type workDuel struct {
	options options
	// sides are this checkout and the other commit, with the same objects.
	sides [2]*contestant
	works []comparedWork
}

// comparedWork is a kind of request and its requests per second and processor times, one value for each round.
type comparedWork struct {
	work
	requests, processor series
}

// compareCommitWorks measures the HTTP rows for both commits, prints the figures, and returns the bars.
func compareCommitWorks(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	binaries, err := bothBinaries(ctx, o, s.folder)
	if err != nil {
		return nil, err
	}
	d := newWorkDuel(o)
	defer d.stop()
	for side, binary := range binaries {
		own := s.in(fmt.Sprintf("works-%d", side))
		own.binary = binary
		if d.sides[side], err = startPaused(ctx, own); err != nil {
			return nil, err
		}
	}
	for round := range o.rounds {
		if err := d.measure(ctx, round); err != nil {
			return nil, err
		}
	}
	return d.bars(), d.write(out)
}

// newWorkDuel prepares the rows: the kinds of requests by which other proxies are compared, and a host with filters.
func newWorkDuel(o options) *workDuel {
	d := &workDuel{options: o}
	for _, w := range works {
		d.works = append(d.works, comparedWork{work: w})
	}
	filtered := func(ctx context.Context, o options, c *contestant) (figures, error) {
		return c.load(o, filteredHost).run(ctx)
	}
	d.works = append(d.works, comparedWork{work: work{name: "short GET, three filters", send: filtered}})
	return d
}

func (d *workDuel) stop() {
	for _, c := range installed(d.sides[:]...) {
		c.stop()
	}
}

// measure adds one round. In each row, both sides are measured one after the other, and the first one alternates by
// round.
func (d *workDuel) measure(ctx context.Context, round int) error {
	for i := range d.works {
		w := &d.works[i]
		if w.tool != "" && serverProgram(w.tool) == "" {
			continue
		}
		err := inTurn(round, func(side int) error {
			c := d.sides[side]
			f, err := c.awake(func() (figures, error) { return w.send(ctx, d.options, c) })
			w.requests.add(side, f.perSecond)
			w.processor.add(side, processorOf(f))
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// bars returns a bar for each row: its minimum ratio to the other commit's requests per second. A row is not measured
// if its tool is missing.
func (d *workDuel) bars() []bar {
	bars := make([]bar, 0, len(d.works))
	for i := range d.works {
		w := &d.works[i]
		name := w.name + ", against " + d.options.against
		if len(w.requests[0]) == 0 {
			bars = append(bars, bar{Work: name, Bar: fmt.Sprintf("at least %.2f", notLess), Measured: h2loadMissing})
			continue
		}
		bars = append(bars, w.requests.atLeast(name, notLess))
	}
	return bars
}

// write prints the medians and the ratios as Markdown.
func (d *workDuel) write(out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"## HTTP against %s\n\nRequests per second, and in brackets the processor time of one. %d keep-alive "+
			"connections unless the row names another number. Medians of %d rounds in turn, %v each; a ratio is the "+
			"median of each round's, and above 1 where this checkout is better. Clients, backend and proxy share %d "+
			"processors.\n\n"+
			"| | this checkout | %[1]s | requests/s | processor time |\n| --- | ---: | ---: | ---: | ---: |\n",
		d.options.against, d.options.connections, d.options.rounds, d.options.duration, runtime.NumCPU())
	for i := range d.works {
		w := &d.works[i]
		if len(w.requests[0]) == 0 {
			text.WriteString(row(w.name, unknown, unknown, unknown, unknown))
			continue
		}
		text.WriteString(row(w.name, w.cell(0), w.cell(1), fmt.Sprintf("%.2f", w.requests.ratio()), w.processorRatio()))
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// cell returns the requests per second of one side, and the processor time of one request if it is known.
func (w *comparedWork) cell(side int) string {
	spent := unknown
	if median := w.processor.median(side); median > 0 {
		spent = shortDuration(median)
	}
	return thousands(w.requests.median(side)) + " (" + spent + ")"
}

// processorRatio returns the other commit's processor time for one request divided by this checkout's. It is above 1 if
// the other commit needs more.
func (w *comparedWork) processorRatio() string {
	if w.processor.median(0) == 0 || w.processor.median(1) == 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f", w.processor.swapped().ratio())
}
