package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/test/harness"
)

// loadRate is how many requests are sent a second. It leaves most of two processors to the API server, so that what is
// measured is how Caddy answers and not who gets a processor.
const loadRate = "1000"

// warmUp is how long requests are sent before their times count.
const warmUp = time.Second

// sum is what bench load prints.
type sum struct {
	Requests int           `json:"requests"`
	Failed   int           `json:"failed"`
	First    string        `json:"firstFailure"`
	P50      time.Duration `json:"p50"`
	P99      time.Duration `json:"p99"`
}

// load is a process that sends requests.
type load struct {
	command *exec.Cmd
	output  bytes.Buffer
}

// startLoad sends requests to some hosts, all of the first backend, until the time is over or it is ended.
func startLoad(cluster *harness.Cluster, caddy *harness.Caddy, duration time.Duration, hosts ...string) (*load, error) {
	l := &load{command: exec.Command(cluster.Programs.Bench, "load", "-address", caddy.HTTP, "-hosts",
		strings.Join(hosts, ","),
		"-body", firstBackend, "-rate", loadRate, "-warm-up", warmUp.String(), "-duration", duration.String())}
	l.command.Stdout, l.command.Stderr = &l.output, os.Stderr
	l.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := l.command.Start(); err != nil {
		return nil, fmt.Errorf("starting the load: %w", err)
	}
	return l, nil
}

// result waits for the end of the load.
func (l *load) result() (sum, error) {
	var s sum
	if err := l.command.Wait(); err != nil {
		return s, fmt.Errorf("the load: %w", err)
	}
	if err := json.Unmarshal(l.output.Bytes(), &s); err != nil {
		return s, fmt.Errorf("reading what the load printed: %w", err)
	}
	if s.Failed > 0 {
		fmt.Fprintf(os.Stderr, "%d requests failed, the first: %s\n", s.Failed, s.First)
	}
	return s, nil
}

// end ends the load now.
func (l *load) end() { _ = l.command.Process.Signal(syscall.SIGTERM) }

// every calls do a number of times, at regular times. What is late is not left out. It returns how long all of it took.
func every(ctx context.Context, interval time.Duration, count int, do func(int) error) (time.Duration, error) {
	begin := time.Now()
	for i := range count {
		timer := time.NewTimer(time.Until(begin.Add(time.Duration(i) * interval)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, ctx.Err()
		case <-timer.C:
		}
		if err := do(i); err != nil {
			return 0, err
		}
	}
	return time.Since(begin), nil
}
