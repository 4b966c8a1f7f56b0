package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"strings"
	"time"
)

// loadCommand is the first argument that only sends requests.
const loadCommand = "load"

// runLoad sends requests and prints a summary as JSON.
func runLoad(ctx context.Context, arguments []string, out io.Writer) error {
	l := load{tolerant: true}
	var hosts string
	flags := flag.NewFlagSet("bench load", flag.ContinueOnError)
	flags.StringVar(&l.address, "address", "", "where to send requests")
	flags.StringVar(&hosts, "hosts", "", "comma-separated host names of the requests")
	flags.StringVar(&l.body, "body", answerBody, "the response body of the backend")
	flags.IntVar(&l.connections, "connections", 16, "keep-alive connections")
	flags.IntVar(&l.perSecond, "rate", 0, "requests a second; 0 for as many as possible")
	flags.DurationVar(&l.warmUp, "warm-up", 0,
		"how long requests are sent before the measurement; failures are always counted")
	flags.DurationVar(&l.duration, "duration", time.Second, "how long requests are sent after that")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	l.hosts = strings.Split(hosts, ",")
	if l.address == "" || hosts == "" || l.connections < 1 || l.duration <= 0 || l.perSecond < 0 || l.warmUp < 0 {
		return errors.New("load needs -address and -hosts, and numbers above 0")
	}
	return json.NewEncoder(out).Encode(sumOf(l.count(ctx)))
}

// sum is the summary of a load for other programs.
type sum struct {
	Requests int    `json:"requests"`
	Failed   int    `json:"failed"`
	First    string `json:"firstFailure,omitempty"`
	// P50 and P99 are in nanoseconds.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
}

func sumOf(t *tally) sum {
	s := sum{Requests: len(t.latencies), Failed: t.failed, P50: t.p50, P99: t.p99}
	if t.first != nil {
		s.First = t.first.Error()
	}
	return s
}
