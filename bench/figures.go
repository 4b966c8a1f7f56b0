package main

import (
	"math"
	"slices"
	"time"
)

// figures is the result of a load.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
	// processor is the proxy's processor time for one request. It is 0 if it is not known.
	processor time.Duration
}

// tally is the result of a load with its failures.
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

// join combines the tallies of all connections.
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

// summarize computes the figures from the latencies of all requests.
func summarize(latencies []time.Duration, duration time.Duration) figures {
	slices.Sort(latencies)
	return figures{
		perSecond: float64(len(latencies)) / duration.Seconds(),
		p50:       quantile(latencies, 0.50),
		p99:       quantile(latencies, 0.99),
	}
}

// quantile returns the smallest value that is not exceeded by at least the given share of the values. It returns 0 if
// there are no values. The values must be sorted.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// medianOf returns the median of each figure over all rounds.
func medianOf(rounds []figures) figures {
	return figures{
		perSecond: median(rounds, func(f figures) float64 { return f.perSecond }),
		p50:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p50) })),
		p99:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p99) })),
		processor: time.Duration(median(rounds, processorOf)),
	}
}

// ratios returns the ratios of requests per second, one for each round.
func ratios(of, to []figures) []float64 { return quotients(rates(of), rates(to)) }

func rates(rounds []figures) []float64 {
	all := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		all = append(all, r.perSecond)
	}
	return all
}

// quotients divides the values of each round, so that what affects the machine during one round affects both sides. The
// result is sorted.
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

// middle returns the median. It sorts values.
func middle(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
