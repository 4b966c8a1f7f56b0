package main

import (
	"fmt"
	"slices"
	"time"
)

// bar is one row in the table of requirements. `make bench` reads it.
type bar struct {
	Work     string `json:"work"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	Met      string `json:"met"`
}

const (
	// maxP99 is the maximum ratio of the p99 while an Ingress changes to the p99 without changes.
	maxP99 = 1.3
	// maxCPU is the maximum share of one processor for these changes.
	maxCPU = 0.10
	// maxMemory is the maximum resident memory with 10,000 Ingresses, in bytes.
	maxMemory = 250 << 20
	// maxGrowth is the maximum growth of the heap for each change, in bytes. The smallest leak for each endpoint, with
	// an entry in a map, would have about this size, and a leaked connection would have sixteen times this size. The
	// limit cannot be 0, because the objects in use vary from one garbage collection to the next.
	maxGrowth = 500
	// fills is the time for which memory grows while endpoints change, because data about removed endpoints is kept for
	// a minute.
	fills = 75 * time.Second
)

func met(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (f *figures) bars(o options) []bar {
	return slices.Concat(f.disturbanceBars(o), f.churnBars(o), []bar{f.memoryBar(o)})
}

func (f *figures) disturbanceBars(o options) []bar {
	work := fmt.Sprintf("one Ingress of %d changed every %v", o.ingresses, changeInterval)
	requests, failed := 0, 0
	var quotients []float64
	for i, c := range f.changing {
		requests += c.Requests
		failed += c.Failed
		quotients = append(quotients, float64(c.P99)/float64(f.quiet[i].P99))
	}
	slices.Sort(quotients)
	middle := quotients[len(quotients)/2]
	return []bar{
		{work + ", under load: failed requests", "0", fmt.Sprintf("%d of %d", failed, requests), met(failed == 0)},
		{
			work + ", under load: p99 against no change", fmt.Sprintf("at most %.1f", maxP99),
			fmt.Sprintf("%.2f (median of %d rounds, %.2f to %.2f)", middle, len(quotients), quotients[0],
				quotients[len(quotients)-1]),
			met(middle <= maxP99),
		},
		{
			work + ", no load: processor time of Caddy", fmt.Sprintf("under %.0f %% of one", 100*maxCPU),
			fmt.Sprintf("%.1f %% (%d changes, applied in %d runs)", 100*f.cpu, f.written, f.runs), met(f.cpu < maxCPU),
		},
	}
}

func (f *figures) churnBars(o options) []bar {
	c, work := f.churn, fmt.Sprintf("%d endpoint changes a second", time.Second/endpointInterval)
	failed := fmt.Sprintf("%d of %d, at %.1f changes a second", c.Failed, c.Requests, c.perSecond)
	return []bar{
		{work + ": failed requests", "0", failed, met(c.Failed == 0)},
		{work + ": reloads", "0", fmt.Sprint(c.reloads), met(c.reloads == 0)},
		f.growthBar(fmt.Sprintf("%s: growth of memory over %d changes", work, o.endpointChanges), o),
	}
}

// growthBar compares the heap at the end with the heap in the middle, because data that is kept for a time fills up in
// the first half.
func (f *figures) growthBar(work string, o options) bar {
	c := f.churn
	growth := float64(c.after.heap-c.middle.heap) / float64(o.endpointChanges-o.endpointChanges/2)
	b := bar{
		work, fmt.Sprintf("none: under %d bytes a change in the second half", maxGrowth),
		fmt.Sprintf("%+.0f bytes a change; first: %s; middle: %s; end: %s", growth, c.before, c.middle, c.after),
		met(growth < maxGrowth),
	}
	if half := endpointInterval * time.Duration(o.endpointChanges/2); half < fills {
		b.Met, b.Measured = "", b.Measured+
			fmt.Sprintf(" (the half takes %v, and the state of removed endpoints is kept for a minute)", half)
	}
	return b
}

// memoryBar uses the largest resident memory of all starts, and the resident memory after the changes.
func (f *figures) memoryBar(o options) bar {
	most := slices.Max(f.memory)
	return bar{
		fmt.Sprintf("memory at %d Ingresses with %d endpoints each", o.ingresses, o.endpoints),
		"under " + megabytes(maxMemory) + " resident",
		fmt.Sprintf("%s when ready (most of %d starts), %s after %d changes", megabytes(most), len(f.memory),
			megabytes(f.memoryAfter),
			len(f.changes)),
		met(max(most, f.memoryAfter) < maxMemory),
	}
}

func medianP99(all []sum) time.Duration {
	values := make([]time.Duration, 0, len(all))
	for _, s := range all {
		values = append(values, s.P99)
	}
	return percentile(values, 50)
}
