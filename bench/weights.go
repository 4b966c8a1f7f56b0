package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// canaries is the number of hosts with a canary. weightPause is the time between two changes of the weight of one
	// canary. minWithCanary is the minimum ratio of requests per second to a host with that canary to those to a host
	// without one.
	canaries      = 1_000
	weightPause   = 100 * time.Millisecond
	minWithCanary = 0.97
	// canaryFile contains the canary of the first host.
	canaryFile = "canary.yaml"
)

// canaryOf returns the canary of a host, with its own Service.
func canaryOf(host, weight int, backend string) string {
	number := canaries + host
	return fmt.Sprintf(ingress, number, hostName(host), number,
		annotated(`canary: "true"`, fmt.Sprintf(`canary-weight: "%d"`, weight))) +
		fmt.Sprintf(service, number, endpointList(1), portOf(backend))
}

// weighed is a contestant with canaries.
type weighed struct {
	*contestant
	backend string
	// changes is the number of changes of the weight, applied is the number of runs that applied changes, and failed is
	// the number of failed requests during the changes.
	changes, applied, failed int
	first                    error
	reloads                  float64
}

// compareWeights changes the weight of a canary during requests, prints the figures, and returns the bars.
func compareWeights(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	s = s.in("weights")
	var more strings.Builder
	for host := 2; host <= canaries; host++ {
		more.WriteString(canaryOf(host, 50, s.backend))
	}
	a := applications{hosts: canaries, endpoints: 1, backend: s.backend}
	without, err := startOurs(ctx, s, "without", a)
	defer without.stop()
	if err != nil {
		return nil, err
	}
	a.more = more.String()
	c, err := startOurs(ctx, s, "canaries", a)
	defer c.stop()
	if err != nil {
		return nil, err
	}
	w := &weighed{contestant: c, backend: s.backend}
	p := price{work: fmt.Sprintf("canary of 50 %% beside %s others, its weight changed every %v, of no canaries",
		thousands(canaries-1), weightPause)}
	for round := range o.rounds {
		err := inTurn(round, func(side int) error {
			measure := [2]func() (figures, error){
				func() (figures, error) { return w.measureWeights(ctx, o) },
				func() (figures, error) { return without.requests(ctx, o, plainHost) },
			}[side]
			f, err := measure()
			p.rounds[side] = append(p.rounds[side], f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return w.bars(&p), w.write(o, &p, out)
}

// measureWeights sends requests to the first host while the weight of its canary changes.
func (w *weighed) measureWeights(ctx context.Context, o options) (figures, error) {
	return w.awake(func() (figures, error) {
		before, err := w.counts(ctx)
		if err != nil {
			return figures{}, err
		}
		limited, cancel := context.WithCancel(ctx)
		defer cancel()
		changed := make(chan error, 1)
		go func() { changed <- w.changeWeights(limited) }()
		l := w.load(o, plainHost)
		l.tolerant = true
		t := l.count(ctx)
		cancel()
		failed := <-changed
		after, err := w.counts(ctx)
		w.failed, w.applied, w.reloads = w.failed+t.failed, w.applied+int(after[0]-before[0]),
			w.reloads+after[1]-before[1]
		if w.first == nil {
			w.first = t.first
		}
		return t.figures, errors.Join(failed, err, ctx.Err())
	})
}

// counts returns the number of applied changes, and the number of configurations that Caddy has loaded.
func (w *weighed) counts(ctx context.Context) ([]float64, error) {
	return w.metrics(ctx, applyTimes+"_count", "k8singress_config_reloads_total")
}

// changeWeights changes the weight until ctx ends. The average weight is one half.
func (w *weighed) changeWeights(ctx context.Context) error {
	for ; ctx.Err() == nil; w.changes++ {
		if err := writeWhole(w.manifests(), canaryFile, canaryOf(plainHost, 40+w.changes%2*20, w.backend)); err != nil {
			return err
		}
		wait(ctx, time.Now().Add(weightPause))
	}
	return nil
}

// bars returns the bars for canaries.
func (w *weighed) bars(p *price) []bar {
	b := bar{
		Work: fmt.Sprintf("%d changes of its weight meanwhile", w.changes), Bar: "no reload, no request fails",
		Measured: fmt.Sprintf("%.0f reloads, %d requests failed", w.reloads, w.failed),
	}
	if w.first != nil {
		b.Measured += fmt.Sprintf(" (%v)", w.first)
	}
	return []bar{atLeast(p.work, minWithCanary, p.rounds[0], p.rounds[1]), held(b, w.reloads == 0 && w.failed == 0)}
}

// write prints the figures as Markdown.
func (w *weighed) write(o options, p *price, out io.Writer) error {
	_, err := fmt.Fprintf(out,
		"\n## A canary whose weight changes\n\n%s hosts have a canary each. The weight of one changes every %v while "+
			"requests go to its host: %d times, which took effect in %d runs. Medians of %d rounds in turn, %v "+
			"each.\n\n"+
			"| | requests/s |\n| --- | ---: |\n%s%s",
		thousands(canaries), weightPause, w.changes, w.applied, o.rounds, o.duration,
		row("canaries", rateCell(p.rounds[0])), row("none, and no changes", rateCell(p.rounds[1])))
	return err
}
