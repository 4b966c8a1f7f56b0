package main

import (
	"context"
	"fmt"
	"io"
	"strings"
)

const (
	// growth is the ratio of Ingresses in the larger folder to those in the smaller one. maxGrowth is the maximum
	// ratio of the times for a change.
	growth    = 10
	maxGrowth = 1.30
)

// compareGrowth changes one Ingress in a small and in a large folder in turn, prints the times until a request uses the
// change, and returns the bars.
func compareGrowth(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	few := o.hosts[len(o.hosts)-1]
	sizes := fmt.Sprintf("one change among %s Ingresses against among %s", thousands(float64(few*growth)),
		thousands(float64(few)))
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## From an Ingress change to the first request served by it, %s\n\n%d changes of one manifest, in turn. "+
			"The holdoff is part of the time, and so is the wait until the folder is quiet.\n\n"+
			"| Services | many | few |\n| --- | ---: | ---: |\n", sizes, o.changes)
	var bars []bar
	for _, services := range []struct {
		name   string
		shared bool
	}{{"a Service for each", false}, {"one Service for all", true}} {
		a := applications{endpoints: 1, backend: s.backend, shared: services.shared}
		times, err := compareSizes(ctx, o, s, a, [2]int{few * growth, few})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", services.name, duration(times.median(0)), duration(times.median(1)))
		bars = append(bars, times.atMost(sizes+", "+services.name, maxGrowth))
	}
	_, err := io.WriteString(out, text.String())
	return bars, err
}

// compareSizes changes one Ingress in turn in two folders with different numbers of hosts.
func compareSizes(ctx context.Context, o options, s site, a applications, hosts [2]int) (*series, error) {
	var both [2]*contestant
	times := &series{}
	for side := range both {
		a.hosts = hosts[side]
		var err error
		both[side], err = startOurs(ctx, s, fmt.Sprintf("growth-%d-%t", a.hosts, a.shared), a)
		defer both[side].stop()
		if err != nil {
			return nil, err
		}
	}
	return times, timeChanges(ctx, o, both, times)
}

// timeChanges changes one Ingress of two contestants in turn, and adds the times until a request uses the change. No
// contestant is paused, since they do nothing without changes and requests.
func timeChanges(ctx context.Context, o options, both [2]*contestant, times *series) error {
	for _, c := range both {
		if err := c.resume(); err != nil {
			return err
		}
	}
	for number := range o.changes {
		err := inTurn(number, func(side int) error {
			took, err := both[side].change(ctx, number)
			times.add(side, float64(took))
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
