package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// victimRate is the number of requests per second by the clients of the victim. They use victimConnections
	// keep-alive connections.
	victimRate, victimConnections = 500, 16
	// maxSlowdown is the maximum ratio of the victim's p99 during an attack to its p99 without one. maxChangeTime is
	// the maximum time until a change of the victim's objects takes effect.
	maxSlowdown, maxChangeTime = 1.50, 5 * time.Second
	// editPause is the time between two edits of a tenant. askPause is the time between two of its requests.
	editPause, askPause = 10 * time.Millisecond, 20 * time.Millisecond
	// silentClients is the number of connections on which the tenant's clients send nothing.
	silentClients = 2000
)

// attack is one way in which a tenant tries to affect others.
type attack struct {
	name string
	// do attacks until ctx ends. It returns an error if the attack itself does not work.
	do func(ctx context.Context, c *contestant) error

	calm, beside []figures
	failed       int
	first        error
	// change is the duration of the victim's slowest change.
	change time.Duration
}

// attacks returns all attacks. Their objects are in the tenant's namespace, and the victim's objects exist at the same
// time.
func attacks() []*attack {
	return []*attack{
		{name: "paths of 16 KiB against its patterns", do: askAgain(tenantHost, "/"+strings.Repeat("a", 16<<10))},
		{name: "100 edits a second of host-wide annotations on the victim's host", do: edits(hostWide)},
		{name: "100 edits a second, of ciphers and TLS versions", do: edits(ciphers)},
		{name: "an Ingress of 1,000 hosts and paths that is added and removed", do: edits(large)},
		{name: "TLS entries for the victim's host, and an invalid Secret", do: edits(garbage)},
		{name: "500 names that do not resolve", do: edits(names)},
		{name: "silent connections", do: silence},
	}
}

// compareTenants measures the victim's requests alone and during each attack, in turn, prints the figures, and returns
// the bars.
func compareTenants(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	s = s.in("tenants")
	c, err := startBoth(ctx, s)
	defer c.stop()
	if err != nil {
		return nil, err
	}
	if err := c.writeTenant(patterns); err != nil {
		return nil, err
	}
	all := attacks()
	for range o.rounds {
		for number, a := range all {
			if err := a.measure(ctx, o, c, number); err != nil {
				return nil, fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}
	return attackBars(all), writeAttacks(o, all, out)
}

// measure adds one round: first the victim alone, then during the attack.
func (a *attack) measure(ctx context.Context, o options, c *contestant, number int) error {
	l := c.load(o, plainHost)
	l.perSecond, l.connections, l.tolerant = victimRate, victimConnections, true
	calm := l.count(ctx)
	if calm.first != nil {
		return calm.first
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	attacking := make(chan error, 1)
	go func() { attacking <- a.do(ctx, c) }()
	var beside *tally
	var took time.Duration
	var err error
	var both sync.WaitGroup
	both.Go(func() { beside = l.count(ctx) })
	both.Go(func() { took, err = c.change(ctx, number) })
	both.Wait()
	cancel()
	a.calm, a.beside = append(a.calm, calm.figures), append(a.beside, beside.figures)
	a.failed += beside.failed
	if a.first == nil {
		a.first = beside.first
	}
	a.change = max(a.change, took)
	return errors.Join(err, <-attacking)
}

// tenantHost is the tenant's own host. tenantFile contains its objects.
const (
	tenantHost = "tenant.bench.test"
	tenantFile = "tenant.yaml"
)

// writeTenant replaces the tenant's objects in the folder of manifests atomically.
func (c *contestant) writeTenant(objects string) error {
	return writeWhole(c.manifests(), tenantFile, objects)
}

// edits returns an attack that writes the tenant's objects repeatedly. objects returns the objects for the edit with
// the given number.
func edits(objects func(number int) string) func(context.Context, *contestant) error {
	return func(ctx context.Context, c *contestant) error {
		for number := 0; ctx.Err() == nil; number++ {
			if err := c.writeTenant(objects(number)); err != nil {
				return err
			}
			wait(ctx, time.Now().Add(editPause))
		}
		return c.writeTenant(patterns)
	}
}

// askAgain returns an attack that sends requests for one path of a host. Responses are ignored.
func askAgain(host, path string) func(context.Context, *contestant) error {
	return func(ctx context.Context, c *contestant) error {
		for ctx.Err() == nil {
			connection, err := load{address: c.http}.dial(ctx, host)
			if err != nil {
				return unlessEnded(ctx, err)
			}
			_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
			if err == nil {
				_, _ = io.Copy(io.Discard, connection) // The response may be truncated.
			}
			if err := errors.Join(err, connection.Close()); err != nil {
				return err
			}
			wait(ctx, time.Now().Add(askPause))
		}
		return nil
	}
}

// silence opens HTTP and HTTPS connections and sends nothing on them.
func silence(ctx context.Context, c *contestant) error {
	var open []net.Conn
	defer func() {
		for _, connection := range open {
			_ = connection.Close() // The other side may have closed it.
		}
	}()
	for number := range silentClients {
		connection, err := load{address: c.addressOf(number%2 == 1)}.dial(ctx, "")
		if err != nil {
			return unlessEnded(ctx, err)
		}
		open = append(open, connection)
	}
	<-ctx.Done()
	return nil
}

// unlessEnded returns err, or nil if ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// attackBars returns the bars for each attack, and for all attacks together.
func attackBars(all []*attack) []bar {
	bars := make([]bar, 0, len(all)+2)
	failed, slowest, first := 0, time.Duration(0), ""
	for _, a := range all {
		s := series{p99s(a.beside), p99s(a.calm)}
		bars = append(bars, s.atMost("p99 of others during: "+a.name, maxSlowdown))
		if failed += a.failed; a.first != nil && first == "" {
			first = fmt.Sprintf(" (beside %s: %v)", a.name, a.first)
		}
		slowest = max(slowest, a.change)
	}
	requests := bar{Work: "requests of others during attacks", Bar: "no request fails",
		Measured: fmt.Sprintf("%d failed%s", failed, first)}
	change := bar{Work: "a change by others during attacks", Bar: fmt.Sprintf("served within %v", maxChangeTime)}
	change.Measured = "at most " + milliseconds(slowest)
	return append(bars, held(requests, failed == 0), held(change, slowest <= maxChangeTime))
}

func p99s(rounds []figures) []float64 {
	all := make([]float64, 0, len(rounds))
	for _, f := range rounds {
		all = append(all, float64(f.p99))
	}
	return all
}

// writeAttacks prints the figures as Markdown.
func writeAttacks(o options, all []*attack, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## Other namespaces during the attacks of a tenant\n\n%d requests a second to a host of one "+
			"namespace, alone and while another namespace does something, medians of %d rounds, %v each. A change "+
			"is the slowest of one Ingress of the first namespace, until it is served, while the other goes on. "+
			"Clients of both share the processors.\n\n"+
			"| attack | p50 without | with | p99 without | with | failed | change |\n| --- |%s\n",
		victimRate, o.rounds, o.duration, strings.Repeat(" ---: |", 6))
	for _, a := range all {
		calm, beside := medianOf(a.calm), medianOf(a.beside)
		text.WriteString(row(a.name, milliseconds(calm.p50), milliseconds(beside.p50), milliseconds(calm.p99),
			milliseconds(beside.p99),
			thousands(float64(a.failed)), milliseconds(a.change)))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
