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

// loadRate is the number of requests per second. It leaves most of two processors to the API server, so that the result
// depends on Caddy and not on which process gets a processor.
const loadRate = "1000"

// warmUp is the time before latencies are recorded.
const warmUp = time.Second

// sum is the output of bench load.
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

// startLoad sends requests to hosts with the first backend, until the duration is over or end is called.
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
		return s, fmt.Errorf("reading the output of the load: %w", err)
	}
	if s.Failed > 0 {
		fmt.Fprintf(os.Stderr, "%d requests failed, the first: %s\n", s.Failed, s.First)
	}
	return s, nil
}

// end stops the load.
func (l *load) end() { _ = l.command.Process.Signal(syscall.SIGTERM) }

// every calls do count times at regular intervals. A late call is not skipped. It returns the total duration.
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
