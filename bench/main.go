// Bench measures this binary against the same binary with plain Caddy routes, nginx and haproxy, side by side in one
// run. It also runs test/scale, which measures on a real API server. It prints the result as Markdown; the last table
// lists each requirement, the measured value, and whether it is met. `make bench` runs it. `bench -against COMMIT`
// measures this checkout against the binary of another commit instead, and one change in a small folder against one in
// a large folder. With -http, it only compares the HTTP rows of both commits, and with -snippets only Ingresses without
// snippets.
//
// Clients, backend and proxy share one machine, so the figures only compare variants with each other. They do not show
// what a dedicated machine could do.
//
// `bench limits` attacks the binary while it has few descriptors or little memory, and fails unless honest clients are
// served. `make limits` runs it; -quick takes half a minute.
//
// `bench load` sends requests to one address of this machine and prints the result as JSON. test/scale uses it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options holds the flags.
type options struct {
	binary      string
	hosts       []int
	rounds      int
	duration    time.Duration
	connections int
	changes     int
	quick       bool
	// scale holds the flags for test/scale. noScale skips it.
	scale   []string
	noScale bool
	// streams measures only TCP and UDP. noStreams skips them.
	streams, noStreams bool
	// http measures only HTTP, annotations only the cost of annotations and keys, snippets only the cost of snippets,
	// tenants only the effect of one namespace on another, metrics only the cost of metrics, and webhook only reviews.
	http, annotations, snippets, tenants, metrics, webhook bool
	// against is a commit. If it is set, only comparisons with this commit are measured, and bars that must hold beside
	// them.
	against string
}

// commands maps the first argument to a command other than the benchmark.
var commands = map[string]func(ctx context.Context, arguments []string, out io.Writer) error{loadCommand: runLoad,
	limitsCommand: runLimits, reviewsCommand: runReviews}

func main() {
	// Child processes end together with the thread that started them, so the main goroutine keeps its thread. Otherwise
	// a child process could end early, or outlive the benchmark.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := run
	arguments := os.Args[1:]
	if len(arguments) > 0 && commands[arguments[0]] != nil {
		do, arguments = commands[arguments[0]], arguments[1:]
	}
	if err := do(ctx, arguments, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "k8singress-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var bars []bar
	for _, part := range o.parts() {
		more, err := part(ctx, o, folder, out)
		if err != nil {
			return err
		}
		bars = append(bars, more...)
	}
	return writeBars(out, bars)
}

// parts returns the comparisons that the flags select.
func (o options) parts() []comparison {
	annotations := withBackend(comparePrices, compareAddresses, compareWeights, compareAnnotated)
	snippets := withBackend(compareSnippets, compareManySnippets)
	metrics := withBackend(compareMetrics, compareNginxNames)
	parts := slices.Concat(
		withBackend(compareWorks, compare, compareHandshakes, compareCosts, compareReloads),
		[]comparison{compareEnd}, annotations, snippets, withBackend(compareTenants),
		[]comparison{compareStreams, scale}, metrics, withBackend(compareWebhook))
	switch {
	case o.against != "" && o.http:
		parts = withBackend(compareCommitWorks)
	case o.against != "" && o.snippets:
		parts = withBackend(compareCommits)
	case o.against != "":
		parts = append(withBackend(compareCommits, compareCommitWorks, compareGrowth, compareConditions),
			compareSplit, countFiles)
	case o.streams:
		parts = []comparison{compareStreams}
	case o.http:
		parts = parts[:len(parts)-3-len(metrics)-1]
	case o.annotations:
		parts = annotations
	case o.snippets:
		parts = snippets
	case o.tenants:
		parts = withBackend(compareTenants)
	case o.metrics:
		parts = metrics
	case o.webhook:
		parts = withBackend(compareWebhook)
	}
	return parts
}

// comparison measures something, prints the figures, and returns the bars. It may write files to folder.
type comparison func(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error)

// siteComparison is a comparison that uses the binary, the folder and the backend of a site.
type siteComparison func(ctx context.Context, o options, s site, out io.Writer) ([]bar, error)

// withBackend returns comparisons that each start a backend.
func withBackend(all ...siteComparison) []comparison {
	started := make([]comparison, len(all))
	for i, compare := range all {
		started[i] = func(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
			backend, err := startBackend()
			if err != nil {
				return nil, err
			}
			defer backend.stop()
			return compare(ctx, o, site{o.binary, folder, backend.address}, out)
		}
	}
	return started
}

// repetition returns the settings of clients that open connections during a measurement.
func (o options) repetition(proxy *process) repetition {
	return repetition{proxy: proxy, clients: o.connections, warmUp: o.duration / 3, duration: o.duration}
}

// compare measures the contestants, prints the figures, and returns the bars.
func compare(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	field, err := startField(ctx, s, o.hosts)
	defer field.stop()
	if err != nil {
		return nil, err
	}
	if err := field.measure(ctx, o); err != nil {
		return nil, err
	}
	changes, err := field.change(ctx, o.changes)
	if err != nil {
		return nil, err
	}
	return field.bars(), write(out, o, field, changes)
}

// quick holds the flags of a run that takes a few minutes. Flags on the command line take precedence.
var quick = map[string]string{"rounds": "3", "duration": "1s", "changes": "10"}

func parse(arguments []string) (options, error) {
	var o options
	var hosts, scale string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", "bin/caddy", "the Caddy to measure")
	flags.StringVar(&hosts, "hosts", "1,1000,10000", "numbers of hosts")
	flags.IntVar(&o.rounds, "rounds", 7, "rounds in which each variant is measured once; figures are medians of them")
	flags.DurationVar(&o.duration, "duration", 2*time.Second,
		"how long one measurement takes, after a third of that to warm up")
	flags.IntVar(&o.connections, "connections", 32, "keep-alive connections")
	flags.IntVar(&o.changes, "changes", 50, "Ingress changes to time, at the largest number of hosts")
	flags.StringVar(&o.against, "against", "",
		"a commit to compare this checkout with, in place of other programs; with -http, only the HTTP rows, "+
			"and with -snippets only Ingresses without snippets")
	flags.BoolVar(&o.quick, "quick", false, "run everything in a few minutes, with fewer and shorter rounds")
	flags.StringVar(&scale, "scale", "", "flags of test/scale, which measures on a real API server")
	flags.BoolVar(&o.noScale, "no-scale", false, "skip test/scale")
	flags.BoolVar(&o.http, "http", false, "HTTP alone")
	flags.BoolVar(&o.annotations, "annotations", false,
		"measure only the cost of annotations and keys of the ConfigMap")
	flags.BoolVar(&o.snippets, "snippets", false, "measure only the cost of snippets")
	flags.BoolVar(&o.tenants, "tenants", false, "measure only the effect of one namespace on another")
	flags.BoolVar(&o.metrics, "metrics", false, "measure only the cost of metrics")
	flags.BoolVar(&o.webhook, "webhook", false, "measure only the admission webhook")
	flags.BoolVar(&o.streams, "streams", false, "TCP and UDP alone")
	flags.BoolVar(&o.noStreams, "no-streams", false, "leave out TCP and UDP")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if o.quick {
		if err := hurry(flags); err != nil {
			return o, err
		}
		scale = "-quick " + scale
	}
	o.scale = strings.Fields(scale)
	return o.complete(hosts)
}

// hurry sets the flags of quick that are not on the command line.
func hurry(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range quick {
		if given[name] {
			continue
		}
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (o options) complete(hosts string) (options, error) {
	var err error
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return o, err
	}
	for _, word := range strings.Split(hosts, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return o, fmt.Errorf("-hosts: %q is not a number above 0", word)
		}
		o.hosts = append(o.hosts, n)
	}
	slices.Sort(o.hosts)
	alone := slices.DeleteFunc([]bool{o.streams, o.http, o.annotations, o.snippets, o.tenants, o.metrics, o.webhook},
		func(given bool) bool { return !given })
	if len(alone) > 1 || o.streams && o.noStreams {
		return o, errors.New(
			"only one of -streams, -no-streams, -http, -annotations, -snippets, -tenants, -metrics and -webhook can " +
				"be used")
	}
	if o.rounds < 1 || o.connections < 1 || o.changes < 1 {
		return o, errors.New("-rounds, -connections and -changes must be at least 1")
	}
	return o, nil
}
