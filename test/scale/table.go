package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// figures holds the results.
type figures struct {
	// created is the time in which the objects were created. It shows the speed of the API server.
	created time.Duration
	// ready and memory have one entry for each start. peak is the peak memory of the last start.
	ready  []time.Duration
	memory []int64
	peak   int64
	// status is the time from the moment when Caddy is ready until the last status is written. It is 0 if this was not
	// measured.
	status time.Duration
	// changes are the times from before a write until the first response that shows the change. writes are the
	// durations of these writes.
	changes, writes []time.Duration
	// memoryAfter is the memory after the changes, in bytes.
	memoryAfter int64

	disturbance
	churn churn
}

func (f *figures) write(out io.Writer, o options) error {
	fmt.Fprintf(out,
		"%d Ingresses, %d Services with %d endpoints each, %d TLS Secrets; real API server; metrics on, access "+
			"log off; %d processors for all of it\n\n", o.ingresses, o.ingresses, o.endpoints, o.secrets,
		runtime.NumCPU())
	if err := writeTable(out, f.rows()); err != nil || o.bars != "" {
		return err
	}
	fmt.Fprintln(out)
	bars := [][]string{{"work", "bar", "measured", "met"}, {"---", "---", "---", "---"}}
	for _, b := range f.bars(o) {
		bars = append(bars, []string{b.Work, b.Bar, b.Measured, cmp.Or(b.Met, "not measured")})
	}
	return writeTable(out, bars)
}

func writeTable(out io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(table, "| "+strings.Join(row, "\t | ")+"\t |")
	}
	return table.Flush()
}

func (f *figures) rows() [][]string {
	status := "not seen"
	if f.status > 0 {
		status = round(f.status)
	}
	return [][]string{
		{"what", "figure", "goal"},
		{"---", "---", "---"},
		{fmt.Sprintf("start to ready, median of %d", len(f.ready)), round(percentile(f.ready, 50)), ""},
		{fmt.Sprintf("start to ready, slowest of %d", len(f.ready)), round(percentile(f.ready, 100)), "under 10 s"},
		{"memory (RSS) when ready, most", megabytes(slices.Max(f.memory)), ""},
		{"memory (RSS) at its peak until then", megabytes(f.peak), ""},
		{"memory (RSS) after the changes", megabytes(f.memoryAfter), ""},
		{fmt.Sprintf("change to first request, p50 of %d", len(f.changes)), round(percentile(f.changes, 50)), ""},
		{fmt.Sprintf("change to first request, p99 of %d", len(f.changes)), round(percentile(f.changes, 99)),
			"under 250 ms"},
		{"of which the API server's write, p50", round(percentile(f.writes, 50)), ""},
		{"of which the API server's write, p99", round(percentile(f.writes, 99)), ""},
		{"first ready to status of all Ingresses", status, ""},
		{"p99 of requests without changes that Caddy reads", round(medianP99(f.quiet)), ""},
		{"p99 of requests while an Ingress changes", round(medianP99(f.changing)), ""},
		{"endpoint changes a second, and replacements in Caddy",
			fmt.Sprintf("%.1f, %.0f", f.churn.perSecond, f.churn.updates), "50"},
		{"(the objects were created in)", round(f.created), ""},
	}
}

// percentile returns the smallest value that is not exceeded by at least part percent of the values.
func percentile(values []time.Duration, part int) time.Duration {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*part+99)/100-1)]
}

func round(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func megabytes(bytes int64) string { return fmt.Sprintf("%d MB", bytes>>20) }
