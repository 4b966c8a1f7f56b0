package main

import (
	"fmt"
	"slices"
	"time"
)

// series holds one figure of two contestants that are measured in turn, with one value for each round.
type series [2][]float64

// inTurn calls do for both sides. The order alternates between rounds, so that no side is always second.
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

// atLeast returns a bar for the ratio of the first side to the second, computed for each round.
func (s *series) atLeast(work string, minimum float64) bar {
	all := quotients(s[0], s[1])
	return held(bar{Work: work, Bar: fmt.Sprintf("at least %.2f", minimum), Measured: spread(all)},
		middle(all) >= minimum)
}

// atMost returns such a bar for a figure of which smaller values are better.
func (s *series) atMost(work string, maximum float64) bar {
	all := quotients(s[0], s[1])
	return held(bar{Work: work, Bar: fmt.Sprintf("at most %.2f", maximum), Measured: spread(all)},
		middle(all) <= maximum)
}

// ratio returns the median of the ratios of the first side to the second.
func (s *series) ratio() float64 { return middle(quotients(s[0], s[1])) }

// swapped returns the same figures with the sides exchanged.
func (s *series) swapped() *series { return &series{s[1], s[0]} }

// duration formats a value of a series of durations.
func duration(value float64) string { return milliseconds(time.Duration(value)) }

// shortDuration formats a duration of less than a millisecond.
func shortDuration(value float64) string {
	return fmt.Sprintf("%.1f µs", value/float64(time.Microsecond))
}
