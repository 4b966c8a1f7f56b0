package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// victimRate is how many requests a second the clients of the victim send, on victimConnections that are kept.
	victimRate, victimConnections = 500, 16
	// mostSlower is how many times longer the slowest in a hundred may take beside a tenant that does its worst, and
	// mostToServe how long a change of the victim's own may take until it is served.
	mostSlower, mostToServe = 1.50, 5 * time.Second
	// editPause is the time between two edits of a tenant, and askPause that between two of its requests.
	editPause, askPause = 10 * time.Millisecond, 20 * time.Millisecond
	// silentClients is how many connections a tenant's clients open and say nothing on.
	silentClients = 2000
)

// attack is the worst that a tenant does in one way.
type attack struct {
	name string
	// do goes on until ctx ends; it returns an error if the attack itself does not work.
	do func(ctx context.Context, c *contestant) error

	calm, beside []figures
	failed       int
	first        error
	// change is how long the slowest change of the victim's took.
	change time.Duration
}

// attacks are all of them. Their objects belong to the namespace of the tenant, and stand beside those of the victim.
func attacks() []*attack {
	return []*attack{
		{name: "paths of 16 KiB against its patterns", do: askAgain(tenantHost, "/"+strings.Repeat("a", 16<<10))},
		{name: "100 edits a second, of what is host-wide on the victim's host", do: edits(hostWide)},
		{name: "100 edits a second, of ciphers and TLS versions", do: edits(ciphers)},
		{name: "an Ingress of 1,000 hosts and paths that comes and goes", do: edits(large)},
		{name: "TLS entries for the victim's host, and a Secret of garbage", do: edits(garbage)},
		{name: "500 names that do not resolve", do: edits(names)},
		{name: "connections that stay silent", do: silence},
	}
}

// compareTenants measures the victim's requests alone and beside each attack, in turn, and returns the bars.
func compareTenants(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	backend, err := startBackend()
	if err != nil {
		return nil, err
	}
	defer backend.stop()
	s := site{o.binary, filepath.Join(folder, "tenants"), backend.address}
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

// measure adds one round: the victim alone, and then beside the tenant.
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

// tenantHost is the tenant's own, and tenantFile has its objects.
const (
	tenantHost = "tenant.bench.test"
	tenantFile = "tenant.yaml"
)

// writeTenant puts the tenant's objects into the folder of manifests at once.
func (c *contestant) writeTenant(objects string) error {
	return writeWhole(c.manifests(), tenantFile, objects)
}

// edits has the tenant write its objects again and again. objects are those of the edit with a number.
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

// askAgain has the tenant's clients ask for one path of a host. What the answer is does not matter.
func askAgain(host, path string) func(context.Context, *contestant) error {
	return func(ctx context.Context, c *contestant) error {
		for ctx.Err() == nil {
			connection, err := load{address: c.http}.dial(ctx, host)
			if err != nil {
				return unlessEnded(ctx, err)
			}
			_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
			if err == nil {
				_, _ = io.Copy(io.Discard, connection) // An end in its midst is an answer, too.
			}
			if err := errors.Join(err, connection.Close()); err != nil {
				return err
			}
			wait(ctx, time.Now().Add(askPause))
		}
		return nil
	}
}

// silence opens connections, by HTTP and by HTTPS, and says nothing on them.
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

// unlessEnded returns an error that is not because ctx has ended.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// attackBars are what each attack is held to, and what all of them are.
func attackBars(all []*attack) []bar {
	bars := make([]bar, 0, len(all)+2)
	failed, slowest, first := 0, time.Duration(0), ""
	for _, a := range all {
		s := series{p99s(a.beside), p99s(a.calm)}
		bars = append(bars, s.atMost("p99 of others beside "+a.name, mostSlower))
		if failed += a.failed; a.first != nil && first == "" {
			first = fmt.Sprintf(" (beside %s: %v)", a.name, a.first)
		}
		slowest = max(slowest, a.change)
	}
	requests := bar{Work: "requests of others beside a tenant's worst", Bar: "none fails",
		Measured: fmt.Sprintf("%d failed%s", failed, first)}
	change := bar{Work: "a change of others beside a tenant's worst", Bar: fmt.Sprintf("served within %v", mostToServe)}
	change.Measured = "at most " + milliseconds(slowest)
	return append(bars, held(requests, failed == 0), held(change, slowest <= mostToServe))
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
		"\n## Others beside a tenant that does its worst\n\n%d requests a second to a host of one namespace, alone "+
			"and while another namespace does something, medians of %d rounds, %v each. A change is the slowest of "+
			"one Ingress of the first namespace, until it is served, while the other goes on. Clients of both share "+
			"the processors.\n\n"+
			"| what the other does | p50 alone | beside it | p99 alone | beside it | failed | change |\n| --- |%s\n",
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
