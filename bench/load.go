package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// load is a number of keep-alive connections that send one GET after the other. It speaks HTTP/1.1 itself: a client
// library would cost as much as the proxy that is measured, on the same processors.
type load struct {
	address     string
	host        string
	connections int
	warmUp      time.Duration
	duration    time.Duration
}

// figures are the result of one load.
type figures struct {
	perSecond float64
	p50, p99  time.Duration
}

// run sends the load. Any answer but the backend's is an error: a proxy that fails fast must not look fast.
func (l load) run(ctx context.Context) (figures, error) {
	begin := time.Now().Add(l.warmUp)
	ctx, cancel := context.WithDeadline(ctx, begin.Add(l.duration))
	defer cancel()
	latencies := make([][]time.Duration, l.connections)
	errs := make([]error, l.connections)
	var group sync.WaitGroup
	for i := range l.connections {
		group.Go(func() { latencies[i], errs[i] = l.connection(ctx, begin) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return figures{}, err
	}
	return summarize(slices.Concat(latencies...), l.duration), nil
}

// connection sends requests on one connection until ctx ends, and returns the times of those that began after begin.
func (l load) connection(ctx context.Context, begin time.Time) ([]time.Duration, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", l.address)
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline.Add(time.Minute)); err != nil {
		return nil, err
	}
	request := []byte("GET / HTTP/1.1\r\nHost: " + l.host + "\r\n\r\n")
	reader := bufio.NewReader(connection)
	var latencies []time.Duration
	for ctx.Err() == nil {
		sent := time.Now()
		if _, err := connection.Write(request); err != nil {
			return nil, err
		}
		if err := readAnswer(reader); err != nil {
			return nil, fmt.Errorf("%s: %w", l.host, err)
		}
		if sent.After(begin) {
			latencies = append(latencies, time.Since(sent))
		}
	}
	return latencies, nil
}

// readAnswer reads one response and compares it with the backend's.
func readAnswer(reader *bufio.Reader) error {
	status, err := reader.ReadString('\n')
	if err != nil {
		return err
	}
	length := -1
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if name, value, _ := strings.Cut(string(line), ":"); strings.EqualFold(name, "Content-Length") {
			length, err = strconv.Atoi(strings.TrimSpace(value))
			if err != nil {
				return err
			}
		}
	}
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") || length != len(answerBody) {
		return fmt.Errorf("the answer is %q with %d bytes, not the backend's", strings.TrimSpace(status), length)
	}
	_, err = reader.Discard(length)
	return err
}

// summarize makes figures of the times of all requests.
func summarize(latencies []time.Duration, duration time.Duration) figures {
	slices.Sort(latencies)
	return figures{
		perSecond: float64(len(latencies)) / duration.Seconds(),
		p50:       quantile(latencies, 0.50),
		p99:       quantile(latencies, 0.99),
	}
}

// quantile returns the smallest of sorted values that at least the given share of them does not exceed; zero of none.
func quantile(sorted []time.Duration, share float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// medianOf returns the figures whose parts are each the median of the rounds.
func medianOf(rounds []figures) figures {
	return figures{
		perSecond: median(rounds, func(f figures) float64 { return f.perSecond }),
		p50:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p50) })),
		p99:       time.Duration(median(rounds, func(f figures) float64 { return float64(f.p99) })),
	}
}

// ratio compares two rows of rounds pair by pair, so that what the machine did in one round weighs on both sides.
func ratio(of, to []figures) float64 {
	quotients := make([]float64, 0, len(of))
	for i := range of {
		quotients = append(quotients, of[i].perSecond/to[i].perSecond)
	}
	return middle(quotients)
}

func median(rounds []figures, part func(figures) float64) float64 {
	values := make([]float64, 0, len(rounds))
	for _, r := range rounds {
		values = append(values, part(r))
	}
	return middle(values)
}

// middle returns the median. It sorts the values.
func middle(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
