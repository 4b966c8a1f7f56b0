package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// labelSets is the number of label sets in a scrape with the names of ingress-nginx.
	labelSets = 5000
	// maxScrape and maxScrapeMemory are the maximum duration of the scrape, and of the memory that it needs.
	maxScrape       = 10 * time.Second
	maxScrapeMemory = 64 << 20
	// memoryInterval is the interval at which the memory is measured during a scrape.
	memoryInterval = 20 * time.Millisecond
)

// compareNginxNames reads the metrics of a process in which each of many hosts has had a request.
func compareNginxNames(ctx context.Context, _ options, s site, out io.Writer) ([]bar, error) {
	free, err := freeAddresses(1)
	if err != nil {
		return nil, err
	}
	c, err := startOurs(ctx, s, "nginx-names",
		applications{hosts: labelSets, endpoints: 1, backend: s.backend},
		"health "+free[0], "health_metrics", "nginx_metrics")
	defer c.stop()
	if err == nil {
		err = c.resume()
	}
	if err != nil {
		return nil, err
	}
	for i := range labelSets {
		response, err := get(ctx, "http://"+c.http+"/", hostName(i+1))
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
	}
	got, err := c.scrape(ctx, free[0])
	if err != nil {
		return nil, err
	}
	if got.sets != labelSets {
		return nil, fmt.Errorf("the metrics have %d label sets, want %d", got.sets, labelSets)
	}
	_, err = fmt.Fprintf(out, "\n## The names of ingress-nginx\n\nOne scrape with %d label sets has %d lines, which "+
		"is %s of text.\n", got.sets, got.lines, megabytes(got.bytes))
	work := fmt.Sprintf("one scrape with the names of ingress-nginx, %d label sets", labelSets)
	return []bar{
		held(bar{Work: work + ": duration", Bar: "under " + maxScrape.String(),
			Measured: got.took.Round(time.Millisecond).String()}, got.took < maxScrape),
		held(bar{Work: work + ": resident memory", Bar: "at most " + megabytes(maxScrapeMemory) + " more",
			Measured: megabytes(got.memory)}, got.memory <= maxScrapeMemory),
	}, err
}

// scraped has the figures of one scrape.
type scraped struct {
	took          time.Duration
	sets, lines   int
	bytes, memory int64
}

// scrape reads the metrics at an address once, without compression.
func (c *contestant) scrape(ctx context.Context, address string) (s scraped, err error) {
	before, err := c.process.memory()
	if err != nil {
		return s, err
	}
	ended, peak := make(chan struct{}), make(chan int64)
	go func() {
		peak <- c.process.peakUntil(ended)
	}()
	begin := time.Now()
	err = s.read(ctx, address)
	s.took = time.Since(begin)
	close(ended)
	s.memory = max(<-peak-before, 0)
	return s, err
}

// peakUntil returns the maximum of the resident memory until ended is closed.
func (p *process) peakUntil(ended <-chan struct{}) (peak int64) {
	for {
		if now, err := p.memory(); err == nil {
			peak = max(peak, now)
		}
		select {
		case <-ended:
			return peak
		case <-time.After(memoryInterval):
		}
	}
}

func (s *scraped) read(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		s.lines++
		s.bytes += int64(len(lines.Bytes())) + 1
		if strings.HasPrefix(lines.Text(), "nginx_ingress_controller_requests{") {
			s.sets++
		}
	}
	return lines.Err()
}
