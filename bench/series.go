package main

import (
	"fmt"
	"slices"
	"time"
)

// series is one figure of two contestants that are measured in turn, with one value for each round.
type series [2][]float64

// inTurn calls do for both sides of a series, in another order in each round: neither is always the one that comes
// second.
func inTurn(round int, do func(side int) error) error {
	for i := range 2 {
		if err := do((round + i) % 2); err != nil {
			return err
		}
	}
	return nil
}

func (s *series) add(side int, value float64) { s[side] = append(s[side], value) }

// median returns the median of one side.
func (s *series) median(side int) float64 { return middle(slices.Clone(s[side])) }

// atLeast holds the first side to a share of the second, round by round.
func (s *series) atLeast(work string, least float64) bar {
	all := quotients(s[0], s[1])
	return held(bar{Work: work, Bar: fmt.Sprintf("at least %.2f", least), Measured: spread(all)}, middle(all) >= least)
}

// atMost is atLeast for a figure that is to be small.
func (s *series) atMost(work string, most float64) bar {
	all := quotients(s[0], s[1])
	return held(bar{Work: work, Bar: fmt.Sprintf("at most %.2f", most), Measured: spread(all)}, middle(all) <= most)
}

// ratio returns the median of the first side's shares of the second, round by round.
func (s *series) ratio() float64 { return middle(quotients(s[0], s[1])) }

// swapped returns the same figure with its sides exchanged.
func (s *series) swapped() *series { return &series{s[1], s[0]} }

// duration writes a value of a series of durations.
func duration(value float64) string { return milliseconds(time.Duration(value)) }

// shortDuration is duration for what takes less than a millisecond.
func shortDuration(value float64) string {
	return fmt.Sprintf("%.1f µs", value/float64(time.Microsecond))
}
