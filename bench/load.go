package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// load is a number of keep-alive connections that send one GET after the other. It speaks HTTP/1.1 itself: a client
// library would cost as much as the proxy that is measured, on the same processors.
type load struct {
	address string
	// secure says that it is HTTPS.
	secure bool
	// hosts are taken in turn by the connections.
	hosts []string
	// body is what the backend answers; it is on one line at most.
	body string
	// header is one more line of each request; it may be empty.
	header      string
	connections int
	// perSecond is how many requests all connections send together; 0 is as many as they can.
	perSecond int
	warmUp    time.Duration
	duration  time.Duration
	// tolerant says that a failure is counted and that its connection is made anew. Otherwise it ends the load.
	tolerant bool
}

const (
	// lateness is how long after the end of the load its last answers may come.
	lateness = 10 * time.Second
	// again is how long after a failure a connection is made anew.
	again = 10 * time.Millisecond
)

// run sends the load. Any answer but the backend's is an error: a proxy that fails fast must not look fast.
func (l load) run(ctx context.Context) (figures, error) {
	t := l.count(ctx)
	return t.figures, errors.Join(ctx.Err(), t.first)
}

// count sends the load, and counts the failures with the rest.
func (l load) count(ctx context.Context) *tally {
	return repetition{l.connections, l.warmUp, l.duration, l.tolerant}.together(ctx, l.repeat)
}

// repeat keeps one connection until ctx ends.
func (l load) repeat(ctx context.Context, begin time.Time, number int, t *tally) {
	p := l.pace(number)
	for ctx.Err() == nil {
		err := l.connection(ctx, begin, p, t)
		if err == nil {
			return
		}
		t.fail(fmt.Errorf("%s: %w", p.host, err))
		if !l.tolerant {
			return
		}
		wait(ctx, time.Now().Add(again))
	}
}

// connection sends requests on one connection until ctx ends, and notes the times of those that were due after begin.
func (l load) connection(ctx context.Context, begin time.Time, p *pace, t *tally) error {
	connection, err := l.dial(ctx, p.host)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline.Add(lateness)); err != nil {
		return err
	}
	request := []byte("GET / HTTP/1.1\r\nHost: " + p.host + "\r\n" + l.line() + "\r\n")
	reader := bufio.NewReader(connection)
	for due := p.next(ctx); ctx.Err() == nil; due = p.next(ctx) {
		if _, err := connection.Write(request); err != nil {
			return err
		}
		if err := readAnswer(reader, l.body); err != nil {
			return err
		}
		if due.After(begin) {
			t.latencies = append(t.latencies, time.Since(due))
		}
	}
	return nil
}

// line is the additional line of each request.
func (l load) line() string {
	if l.header == "" {
		return ""
	}
	return l.header + "\r\n"
}

func (l load) dial(ctx context.Context, host string) (net.Conn, error) {
	if !l.secure {
		return new(net.Dialer).DialContext(ctx, "tcp", l.address)
	}
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	return dialer.DialContext(ctx, "tcp", l.address)
}

// pace says when one connection sends its requests, and to which host.
type pace struct {
	host     string
	interval time.Duration
	due      time.Time
}

// pace spreads the connections over the time between two requests of one.
func (l load) pace(number int) *pace {
	p := &pace{host: l.hosts[number%len(l.hosts)]}
	if l.perSecond > 0 {
		p.interval = time.Second * time.Duration(l.connections) / time.Duration(l.perSecond)
		p.due = time.Now().Add(p.interval * time.Duration(number) / time.Duration(l.connections))
	}
	return p
}

// next waits until a request is due, and returns that time. What is late because an answer was late counts from when it
// was due: users do not wait for each other.
func (p *pace) next(ctx context.Context) time.Time {
	if p.interval == 0 {
		return time.Now()
	}
	due := p.due
	p.due = due.Add(p.interval)
	wait(ctx, due)
	return due
}

func wait(ctx context.Context, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// readAnswer reads one response and compares it with the backend's.
func readAnswer(reader *bufio.Reader, body string) error {
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
	if !strings.HasPrefix(status, "HTTP/1.1 200 ") || length != len(body) {
		return fmt.Errorf("the answer is %q with %d bytes, not the backend's", strings.TrimSpace(status), length)
	}
	return readBody(reader, body)
}

func readBody(reader *bufio.Reader, body string) error {
	got, err := reader.Peek(len(body))
	if err != nil {
		return err
	}
	if string(got) != body {
		return fmt.Errorf("the answer is %q, not the backend's", got)
	}
	_, err = reader.Discard(len(body))
	return err
}
