package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"
)

// write prints all figures as Markdown.
func write(out io.Writer, o options, f *field, changes []time.Duration) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"## Requests\n\n%d keep-alive connections, short GET, answer of %d bytes. Metrics on, access log off, "+
			"for all. In brackets stands the processor time of the proxy for one. Medians of %d rounds in turn, "+
			"%v each; ratios are medians of each round's. Clients, backend and proxy share %d processors (%s/%s, "+
			"%s).\n\n",
		o.connections, len(answerBody), o.rounds, o.duration, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version())
	writeRequests(&text, f)
	largest := f.largest()
	fmt.Fprintf(&text, "\n## At %s hosts\n\n| | plain Caddy | k8singress |\n| --- | ---: | ---: |\n",
		thousands(float64(largest.hosts)))
	for _, row := range []struct {
		name string
		of   func(*contestant) string
	}{
		{"start to ready", func(c *contestant) string { return c.toReady.Round(10 * time.Millisecond).String() }},
		{"memory when ready", func(c *contestant) string { return megabytes(c.memory) }},
		{"memory after the load", func(c *contestant) string { return megabytes(c.peak) }},
	} {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", row.name, row.of(largest.plain), row.of(largest.ours))
	}
	writeChanges(&text, largest.hosts, changes)
	_, err := io.WriteString(out, text.String())
	return err
}

func writeRequests(text *strings.Builder, f *field) {
	text.WriteString("| hosts | asked | plain requests/s | k8singress requests/s | ratio " +
		"| ratio to plain, fewest hosts | plain p99 | k8singress p99 |\n" +
		"| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	base := f.pairs[0].plain.first
	for _, p := range f.pairs {
		for _, row := range []struct {
			name        string
			plain, ours []figures
		}{{"first", p.plain.first, p.ours.first}, {"last", p.plain.last, p.ours.last}} {
			plain, ours := medianOf(row.plain), medianOf(row.ours)
			fmt.Fprintf(text, "| %s | %s | %s | %s | %.2f | %.2f | %s | %s |\n", thousands(float64(p.hosts)), row.name,
				rateCell(row.plain), rateCell(row.ours), ratio(row.ours, row.plain), ratio(row.ours, base),
				milliseconds(plain.p99), milliseconds(ours.p99))
			if p.hosts == 1 {
				break
			}
		}
	}
}

func writeChanges(text *strings.Builder, hosts int, changes []time.Duration) {
	sorted := slices.Sorted(slices.Values(changes))
	fmt.Fprintf(text, "\n## From an Ingress change to the first request served by it\n\n"+
		"%d changes of one manifest among %s Ingresses. The holdoff is part of the time, and so is the wait until "+
		"the folder is quiet.\n\n"+
		"| p50 | p99 | longest |\n| ---: | ---: | ---: |\n| %s | %s | %s |\n",
		len(sorted), thousands(float64(hosts)),
		milliseconds(quantile(sorted, 0.50)), milliseconds(quantile(sorted, 0.99)), milliseconds(quantile(sorted, 1)))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

// unknown is the text of a cell without a figure.
const unknown = "-"

// processorCell returns the processor time of one request, or unknown if it was not measured.
func processorCell(f figures) string {
	if f.processor == 0 {
		return unknown
	}
	return shortDuration(float64(f.processor))
}

// processorRatio returns the ratio of processor times per request, computed for each round.
func processorRatio(of, to []figures) string {
	if medianOf(of).processor == 0 || medianOf(to).processor == 0 {
		return unknown
	}
	return fmt.Sprintf("%.2f", middle(quotients(processorTimes(of), processorTimes(to))))
}

func processorTimes(rounds []figures) []float64 {
	all := make([]float64, 0, len(rounds))
	for _, f := range rounds {
		all = append(all, processorOf(f))
	}
	return all
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", bytes>>20) }

// thousands formats a number without fraction, with commas between thousands.
func thousands(number float64) string {
	digits := fmt.Sprintf("%.0f", number)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
