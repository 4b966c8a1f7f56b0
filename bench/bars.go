package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// bar is one row in the table of requirements. test/scale writes its bars as JSON with the same fields.
type bar struct {
	Work     string `json:"work"`
	Bar      string `json:"bar"`
	Measured string `json:"measured"`
	// Met is "yes" or "no". It is empty if nothing was measured.
	Met string `json:"met"`
}

// bars returns the bars for all contestants.
func (f *field) bars() []bar {
	first, largest := f.pairs[0], f.largest()
	one := func(hosts int) string {
		if hosts == 1 {
			return "1 host"
		}
		return thousands(float64(hosts)) + " hosts"
	}
	return []bar{
		atLeast("plain proxying, "+one(first.hosts)+", against the same binary with one stock Caddy route each", 1.0,
			first.ours.first, first.plain.first),
		atLeast(fmt.Sprintf("host %s against the first", thousands(float64(largest.hosts))), 0.98,
			largest.ours.last, largest.ours.first),
		f.manyAgainstOne(),
	}
}

func (f *field) manyAgainstOne() bar {
	work := thousands(manyEndpoints) + " endpoints against 1"
	if f.many == nil {
		return bar{Work: work, Bar: "at least 0.95", Measured: "only Linux has an address for each endpoint"}
	}
	return atLeast(work, 0.95, f.many.first, f.pairs[0].ours.first)
}

// atLeast returns a bar for the ratio of requests per second, computed for each round. Measured also has the ratio of
// processor times, because it varies less if the machine is busy with other work.
func atLeast(work string, minimum float64, of, to []figures) bar {
	all := ratios(of, to)
	b := bar{Work: work, Bar: fmt.Sprintf("at least %.2f", minimum), Measured: spread(all)}
	if processor := processorRatio(of, to); processor != unknown {
		b.Measured += ", with " + processor + " of the processor time"
	}
	return held(b, middle(all) >= minimum)
}

// atMost returns a bar for the ratio of costs, such as latencies, computed for each round.
func atMost(work string, maximum float64, of, to []figures) bar {
	all := ratios(to, of)
	return held(bar{Work: work, Bar: fmt.Sprintf("at most %.2f", maximum), Measured: spread(all)},
		middle(all) <= maximum)
}

func spread(all []float64) string {
	return fmt.Sprintf("%.2f (median of %d rounds, %.2f to %.2f)", middle(all), len(all), all[0], all[len(all)-1])
}

func held(b bar, met bool) bar {
	b.Met = "no"
	if met {
		b.Met = "yes"
	}
	return b
}

// writeBars prints the table of requirements.
func writeBars(out io.Writer, bars []bar) error {
	var text strings.Builder
	text.WriteString("\n## Requirements\n\n| work | bar | measured | met |\n| --- | --- | --- | --- |\n")
	for _, b := range bars {
		if b.Met == "" {
			b.Met = "not measured"
		}
		fmt.Fprintf(&text, "| %s |\n", strings.Join([]string{b.Work, b.Bar, b.Measured, b.Met}, " | "))
	}
	if slices.ContainsFunc(bars, func(b bar) bool { return b.Met == "no" }) {
		text.WriteString(
			"\nOther work on this machine makes single figures fall short: run it again before you look for the " +
				"cause.\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
