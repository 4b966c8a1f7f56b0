package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// reloads is the number of configurations that Caddy loads under load.
const reloads = 200

// crowd is a group of clients of all kinds that send requests to one contestant at the same time.
type crowd []*clients

// compareReloads loads configurations repeatedly while clients send requests, prints the figures, and returns the bar.
func compareReloads(ctx context.Context, _ options, s site, out io.Writer) ([]bar, error) {
	c, err := startBoth(ctx, s.in("reloads"))
	defer c.stop()
	if err != nil {
		return nil, err
	}
	all := crowd{
		c.keptClients("HTTP/1.1, kept", 8, false), c.keptClients("HTTPS with HTTP/1.1, kept", 8, true), c.twoClients(8),
		c.threeClients(2),
		c.newClients("HTTP/1.1, new", 2, false), c.newClients("HTTPS with HTTP/1.1, new", 1, true), c.webSockets(16),
	}
	var took time.Duration
	err = all.while(ctx, func() error {
		begin := time.Now()
		defer func() { took = time.Since(begin) }()
		return c.reload(ctx)
	})
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf(
		"\n## %d reloads under load\n\nCaddy loads two configurations in turn by its admin API, which takes %v "+
			"in all. A connection that is kept, or a WebSocket, that ends is a failure.\n\n", reloads,
		took.Round(10*time.Millisecond))
	work := fmt.Sprintf("requests and streams while Caddy loads %d configurations", reloads)
	b := bar{Work: work, Bar: "none fails, none is cut", Measured: all.failures()}
	return []bar{held(b, all.failed() == 0)}, all.write(out, head)
}

// startBoth starts Caddy with a host for HTTP and a host for HTTPS, and more options. The process is not paused.
func startBoth(ctx context.Context, s site, options ...string) (*contestant, error) {
	c, err := startPaused(ctx, s, options...)
	if err == nil {
		err = c.resume()
	}
	return c, err
}

// startPaused starts Caddy with the hosts for all works, and pauses it.
func startPaused(ctx context.Context, s site, options ...string) (*contestant, error) {
	m, err := newMaker()
	if err != nil {
		return &contestant{}, err
	}
	certificate, key, err := m.issue(hostName(secureHost))
	if err != nil {
		return &contestant{}, err
	}
	return startOurs(ctx, s, "ours", worksApplications(s, certificate, key), options...)
}

// while runs all clients until do returns.
func (cr crowd) while(ctx context.Context, do func() error) error {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for _, each := range cr {
		running.Go(func() { each.tally = each.ask(limited) })
	}
	err := do()
	cancel()
	running.Wait()
	for _, each := range cr {
		if len(each.tally.latencies) == 0 && err == nil {
			err = errors.Join(fmt.Errorf("%s: no request was answered", each.name), each.tally.first)
		}
	}
	return errors.Join(err, ctx.Err())
}

// reload loads two configurations in turn.
func (c *contestant) reload(ctx context.Context) error {
	both := [2][]byte{c.caddyfile("disable_catch_all"), c.caddyfile()}
	for i := range reloads {
		begin := time.Now()
		err := c.loadConfiguration(ctx, both[i%2])
		for errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) {
			// Caddy's admin API closes its socket at each reload, together with connections that it has not accepted
			// yet. A retry is safe, because Caddy does not load a configuration again that is already in effect.
			err = c.loadConfiguration(ctx, both[i%2])
		}
		if err != nil {
			return fmt.Errorf("reload %d: %w", i+1, err)
		}
		wait(ctx, begin.Add(changePause))
	}
	return nil
}

// loadConfiguration loads a Caddyfile. The configuration is in effect when it returns.
func (c *contestant) loadConfiguration(ctx context.Context, caddyfile []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.admin+"/load",
		bytes.NewReader(caddyfile))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	// After the reload, the admin API has another server.
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("it is answered with %s: %s", response.Status, text)
	}
	return errors.Join(err, response.Body.Close())
}

// failed returns the number of requests and exchanges that failed.
func (cr crowd) failed() int {
	failed := 0
	for _, each := range cr {
		failed += each.tally.failed
	}
	return failed
}

// failures returns the number of failures and the first error as text.
func (cr crowd) failures() string {
	answered, first := 0, ""
	for _, each := range cr {
		answered += len(each.tally.latencies)
		if each.tally.failed > 0 && first == "" {
			first = fmt.Sprintf(" (%s: %v)", each.name, each.tally.first)
		}
	}
	return fmt.Sprintf("%d of %s failed%s", cr.failed(), thousands(float64(answered+cr.failed())), first)
}

// write prints the result of each kind of client as Markdown.
func (cr crowd) write(out io.Writer, head string) error {
	var text strings.Builder
	text.WriteString(head + "| clients | requests | failed |\n| --- | ---: | ---: |\n")
	for _, each := range cr {
		total := len(each.tally.latencies) + each.tally.failed
		text.WriteString(row(each.name, thousands(float64(total)), thousands(float64(each.tally.failed))))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
