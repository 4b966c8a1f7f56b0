// Bench measures this binary against the same binary with plain Caddy routes, side by side in one run, and prints the
// result as Markdown. `make bench` runs it.
//
// Clients, backend and proxy share one machine, so the figures compare variants with each other; they do not say what a
// machine of their own could do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	binary      string
	hosts       []int
	rounds      int
	duration    time.Duration
	connections int
	changes     int
}

func main() {
	// A process that this one starts ends with the thread that started it, so that nothing outlives the benchmark.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
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
	backend, err := startBackend()
	if err != nil {
		return err
	}
	defer backend.stop()
	field, err := startField(ctx, o, folder, backend.address)
	defer field.stop()
	if err != nil {
		return err
	}
	if err := field.measure(ctx, o); err != nil {
		return err
	}
	changes, err := field.change(ctx, o.changes)
	if err != nil {
		return err
	}
	return write(out, o, field, changes)
}

func parse(arguments []string) (options, error) {
	var o options
	var hosts string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.binary, "binary", "bin/caddy", "the Caddy to measure")
	flags.StringVar(&hosts, "hosts", "1,1000,10000", "numbers of hosts")
	flags.IntVar(&o.rounds, "rounds", 7, "rounds in which each variant is measured once; figures are medians of them")
	flags.DurationVar(&o.duration, "duration", 2*time.Second, "how long one measurement takes, after a third of that to warm up")
	flags.IntVar(&o.connections, "connections", 32, "keep-alive connections")
	flags.IntVar(&o.changes, "changes", 50, "Ingress changes to time, at the largest number of hosts")
	if err := flags.Parse(arguments); err != nil {
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
	if o.rounds < 1 || o.connections < 1 || o.changes < 1 {
		return o, errors.New("-rounds, -connections and -changes are at least 1")
	}
	return o, nil
}
