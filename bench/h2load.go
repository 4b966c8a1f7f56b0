package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// h2Connections is the number of HTTP/2 connections that h2load opens. h2Streams is the number of concurrent
	// streams on each.
	h2Connections, h2Streams = 8, 32
	h2loadMissing            = "h2load is not installed: apt-get install nghttp2-client"
)

// h2Finished matches the line in which h2load prints the request rate.
var h2Finished = regexp.MustCompile(`(?m)^finished in [^,]+, ([0-9.]+) req/s`)

// h2WarmUp is the number of requests before the measurement.
const h2WarmUp = 2000

// sendTwo measures short GETs over HTTP/2 with h2load, for about as long as other works take. It returns no quantiles.
func sendTwo(ctx context.Context, o options, c *contestant) (figures, error) {
	rate, err := h2load(ctx, c.https, h2WarmUp)
	if err != nil {
		return figures{}, err
	}
	requests := max(h2WarmUp, int(rate*o.duration.Seconds()))
	spent := c.process.meter(ctx, time.Now())
	rate, err = h2load(ctx, c.https, requests)
	processor, errSpent := spent()
	return figures{perSecond: rate, processor: processor / time.Duration(requests)}, errors.Join(err, errSpent)
}

// h2load sends a number of requests, and returns how many it has sent per second. It returns an error if a request
// fails. It passes a number rather than a duration, because h2load 1.52 does not always end after the duration.
func h2load(ctx context.Context, address string, requests int) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, "h2load", "-c", strconv.Itoa(h2Connections), "-m", strconv.Itoa(h2Streams),
		"-n", strconv.Itoa(requests), "--connect-to", address, "https://"+hostName(secureHost)+"/")
	command.SysProcAttr = endWithParent(syscall.SIGKILL)
	output, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("h2load: %w: %s", err, output)
	}
	return readH2load(string(output), requests)
}

// readH2load parses the output of h2load.
func readH2load(output string, requests int) (perSecond float64, err error) {
	finished := h2Finished.FindStringSubmatch(output)
	if finished == nil || !strings.Contains(output,
		fmt.Sprintf("\nstatus codes: %d 2xx, 0 3xx, 0 4xx, 0 5xx\n", requests)) {
		return 0, fmt.Errorf("h2load got fewer than %d responses: %s", requests, output)
	}
	return strconv.ParseFloat(finished[1], 64)
}
