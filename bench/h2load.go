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
	// h2Connections and h2Streams are how many connections of HTTP/2 h2load has, and how many streams are open on each.
	h2Connections, h2Streams = 8, 32
	h2loadMissing            = "h2load is not installed: apt-get install nghttp2-client"
)

// h2Finished is the line in which h2load says how fast it was.
var h2Finished = regexp.MustCompile(`(?m)^finished in [^,]+, ([0-9.]+) req/s`)

// h2WarmUp is how many requests h2load sends before others count.
const h2WarmUp = 2000

// sendTwo has h2load send short GETs by HTTP/2, for about as long as other works take. It knows no quantiles.
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

// h2load sends a number of requests, and returns how many it has sent in a second. One that fails is an error. The
// number is given rather than a time, because h2load 1.52 does not always end when its time is over.
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

// readH2load reads what it prints.
func readH2load(output string, requests int) (perSecond float64, err error) {
	finished := h2Finished.FindStringSubmatch(output)
	if finished == nil || !strings.Contains(output,
		fmt.Sprintf("\nstatus codes: %d 2xx, 0 3xx, 0 4xx, 0 5xx\n", requests)) {
		return 0, fmt.Errorf("not all %d requests of h2load were answered: %s", requests, output)
	}
	return strconv.ParseFloat(finished[1], 64)
}
