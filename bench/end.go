package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// slowClients is the number of requests of each protocol that are in progress when the process is terminated.
	slowClients = 8
	// shutdownDelay is the time for which the process still accepts new requests after the signal, so that it can ask
	// all clients to close their connections.
	shutdownDelay = time.Second
)

// compareEnd terminates a process during slow and new requests, prints the figures, and returns the bar.
func compareEnd(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	backend, err := startBackend()
	if err != nil {
		return nil, err
	}
	defer backend.stop()
	s := site{o.binary, filepath.Join(folder, "end"), backend.address}
	c, err := startBoth(ctx, s, "shutdown_delay "+shutdownDelay.String())
	defer c.stop()
	if err != nil {
		return nil, err
	}
	slow, err := c.slowClients(ctx)
	if err != nil {
		return nil, err
	}
	all := append(slow, c.leavingClients("HTTP/1.1, short", 8, false),
		c.leavingClients("HTTPS with HTTP/1.1, short", 8, true))
	underWay := func(context.Context) bool { return backend.slow.Load() == int64(len(slow)*slowClients) }
	var took time.Duration
	err = all.while(ctx, func() error {
		if err := c.process.await(ctx, underWay); err != nil {
			return fmt.Errorf("waiting for the requests that take %v: %w", slowTime, err)
		}
		begin := time.Now()
		defer func() { took = time.Since(begin) }()
		return c.end(ctx, backend)
	})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(
		"\n## SIGTERM under load\n\n%d requests of each protocol are in flight when the process gets SIGTERM, "+
			"and take another %v. New ones arrive. `shutdown_delay` is %v; the process ends after %v. "+
			"A client that can no longer connect has not lost a request.\n\n",
		slowClients, slowTime, shutdownDelay, took.Round(10*time.Millisecond))
	b := bar{Work: "requests during a shutdown", Bar: "no request is lost", Measured: all.failures()}
	return []bar{held(b, all.failed() == 0)}, all.write(out, head)
}

// end sends SIGTERM to the process, releases the slow requests, and waits until the process has ended.
func (c *contestant) end(ctx context.Context, b *backend) error {
	if err := c.process.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	close(b.released)
	select {
	case <-c.process.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s does not end; its log ends with: %s", c.name, c.process.lastWords())
	case <-ctx.Done():
		return ctx.Err()
	}
}

// slowClients returns clients that send one slow request each, with each protocol. The requests of HTTP/2 share a
// connection, and so do the requests of HTTP/3.
func (c *contestant) slowClients(ctx context.Context) (crowd, error) {
	ask := func(secure bool) func(context.Context) error {
		return func(ctx context.Context) error {
			l := load{address: c.addressOf(secure), secure: secure, body: answerBody, path: slowPath}
			connection, err := l.open(ctx, hostOf(secure))
			if err != nil {
				return err
			}
			return connection.Close()
		}
	}
	two, three := c.twoClient(), c.threeClient()
	if err := errors.Join(askBy(ctx, two, "/"), askBy(ctx, three, "/")); err != nil {
		return nil, err
	}
	return crowd{
		once("HTTP/1.1, "+slowTime.String(), ask(false)),
		once("HTTPS with HTTP/1.1, "+slowTime.String(), ask(true)),
		once("HTTP/2, "+slowTime.String(), func(ctx context.Context) error { return askBy(ctx, two, slowPath) }),
		once("HTTP/3, "+slowTime.String(), func(ctx context.Context) error { return askBy(ctx, three, slowPath) }),
	}, nil
}

// once returns clients that call do once. The context of do does not end when the clients are stopped.
func once(name string, do func(context.Context) error) *clients {
	return &clients{name: name, ask: func(ctx context.Context) *tally {
		ctx = context.WithoutCancel(ctx)
		tallies := make([]*tally, slowClients)
		var asking sync.WaitGroup
		for i := range tallies {
			tallies[i] = &tally{}
			asking.Go(func() { repetition{}.once(time.Time{}, tallies[i], func() error { return do(ctx) }) })
		}
		asking.Wait()
		return join(tallies, slowTime)
	}}
}

// leavingClients returns clients that send one request after the other, and close a connection if a response asks them
// to. They stop when they cannot connect any more.
func (c *contestant) leavingClients(name string, number int, secure bool) *clients {
	l := load{address: c.addressOf(secure), secure: secure, hosts: []string{hostOf(secure)}, body: answerBody}
	r := repetition{clients: number, duration: endless, tolerant: true}
	return &clients{name: name, ask: func(ctx context.Context) *tally {
		return r.together(ctx, func(ctx context.Context, _ time.Time, _ int, t *tally) {
			for ctx.Err() == nil {
				connection, err := l.dial(ctx, hostOf(secure))
				if err != nil {
					return
				}
				if err := errors.Join(l.askUntilClose(ctx, connection, t), connection.Close()); err != nil {
					t.fail(err)
				}
			}
		})
	}}
}

// askUntilClose sends requests until a response has the header Connection: close.
func (l load) askUntilClose(ctx context.Context, connection net.Conn, t *tally) error {
	reader := bufio.NewReader(connection)
	for ctx.Err() == nil {
		begin := time.Now()
		if err := connection.SetDeadline(begin.Add(lateness)); err != nil {
			return err
		}
		if _, err := connection.Write(l.request(l.hosts[0])); err != nil {
			return err
		}
		response, err := http.ReadResponse(reader, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK || string(body) != l.body {
			return fmt.Errorf("the response is %s, not the backend's", response.Status)
		}
		t.latencies = append(t.latencies, time.Since(begin))
		if response.Close {
			return nil
		}
	}
	return nil
}
