package main

import (
	"math"
	"slices"
	"time"
)

// figures are the result of one load.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
	// processor is the proxy's processor time of one request; it is zero where that is not known.
	processor time.Duration
}

// tally is what came of a load, with its failures.
type tally struct {
	figures
	latencies []time.Duration
	failed    int
	// first is the first failure.
	first error
}

func (t *tally) fail(err error) {
	t.failed++
	if t.first == nil {
		t.first = err
	}
}

// join makes one of the tallies of all connections.
func join(tallies []*tally, duration time.Duration) *tally {
	all := &tally{}
	for _, t := range tallies {
		all.latencies = append(all.latencies, t.latencies...)
		all.failed += t.failed
		if all.first == nil {
			all.first = t.first
		}
	}
	all.figures = summarize(all.latencies, duration)
	return all
}

// summarize makes figures of the times of all requests.
func summarize(latencies []time.Duration, duration time.Duration) figures {
	slices.Sort(latencies)
	return figures{
		perSecond: float64(len(latencies)) / duration.Seconds(),
		p50:       quantile(latencies, 0.50),
		p99:       quantile(latencies, 0.99),
	}
}

// quantile returns the smallest of sorted values that at least the given share of them does not exceed; zero of none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// medianOf returns the figures whose parts are each the median of the rounds.
func medianOf(rounds []figures) figures {
	return figures{
		perSecond: median(rounds, func(f figures) float64 { return f.perSecond }),
		p50:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p50) })),
		p99:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p99) })),
		processor: time.Duration(median(rounds, processorOf)),
	}
}

// ratios compares the requests per second of two rows of rounds.
func ratios(of, to []figures) []float64 { return quotients(rates(of), rates(to)) }

func rates(rounds []figures) []float64 {
	all := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		all = append(all, r.perSecond)
	}
	return all
}

// quotients compares two rows of rounds pair by pair, so that what the machine did in one round weighs on both sides.
// They are sorted.
func quotients(of, to []float64) []float64 {
	all := make([]float64, 0, len(of))
	for i := range of {
		all = append(all, of[i]/to[i])
	}
	slices.Sort(all)
	return all
}

func processorOf(f figures) float64 { return float64(f.processor) }

func ratio(of, to []figures) float64 { return middle(ratios(of, to)) }

func median(rounds []figures, part func(figures) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		values = append(values, part(r))
	}
	return middle(values)
}

// middle returns the median. It sorts the values.
func middle(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
