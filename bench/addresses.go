package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	// manyAddresses is the number of clients that a limit keeps at the same time. maxLimitMemory is the maximum memory
	// for them, in bytes. maxLimitSlowdown is the maximum ratio of the p99 with the limit to the p99 without it.
	manyAddresses    = 100_000
	maxLimitMemory   = 16 << 20
	maxLimitSlowdown = 1.10
	// limitedHost is the number of the host with the limit. plainHost has no limit.
	limitedHost = 2
)

// countsEverybody configures a limit that rejects no client, and keeps the counter of every client during the
// measurement.
var countsEverybody = annotated(`limit-rpm: "1"`, `limit-burst-multiplier: "1000"`)

// forwardedFor is the start of the header line with the address of the client.
const forwardedFor = "X-Forwarded-For: 11."

// addresses generates client addresses for the X-Forwarded-For header. All of them have the same length.
type addresses struct{ turn atomic.Uint64 }

// next overwrites the address in request with the next address. A nil receiver leaves request unchanged.
func (a *addresses) next(request []byte) {
	if a == nil {
		return
	}
	n := a.turn.Add(1)
	address := fmt.Appendf(nil, "%d.%d.%d", 100+n/10_000%(manyAddresses/10_000), 100+n/100%100, 100+n%100)
	copy(request[bytes.Index(request, []byte(forwardedFor))+len(forwardedFor):], address)
}

// limited measures a contestant that has one host with a limit.
type limited struct {
	*contestant
	addresses addresses
	// rounds holds the figures with the limit and without it. grown is the growth of the live heap, in bytes, after the
	// limit has counted all addresses.
	rounds [2][]figures
	grown  int64
}

// compareAddresses measures a limit while it counts many clients, prints the figures, and returns the bars.
func compareAddresses(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	s = s.in("addresses")
	more := trustedProxy + fmt.Sprintf(ingress, limitedHost, hostName(limitedHost), 1, countsEverybody)
	c, err := startOurs(ctx, s, "ours", applications{hosts: 1, endpoints: 1, backend: s.backend, more: more})
	defer c.stop()
	if err != nil {
		return nil, err
	}
	l := &limited{contestant: c}
	l.header = forwardedFor + "100.100.100"
	if err := l.fill(ctx, o); err != nil {
		return nil, err
	}
	for round := range o.rounds {
		err := inTurn(round, func(side int) error {
			f, err := l.ask(ctx, o, [2]int{limitedHost, plainHost}[side])
			l.rounds[side] = append(l.rounds[side], f)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return l.bars(), l.write(o, out)
}

// ask sends requests with all addresses in turn to one host.
func (l *limited) ask(ctx context.Context, o options, host int) (figures, error) {
	return l.awake(func() (figures, error) {
		all := l.load(o, host)
		all.from = &l.addresses
		return all.run(ctx)
	})
}

// fill sends requests until the limit has counted every address. It sends the same requests to the host without a limit
// first, so that the heap grows only by the counters.
func (l *limited) fill(ctx context.Context, o options) error {
	_, err := l.ask(ctx, o, plainHost)
	if err != nil {
		return err
	}
	before, err := l.liveHeap(ctx)
	for from := l.addresses.turn.Load(); err == nil && l.addresses.turn.Load() < from+manyAddresses; {
		_, err = l.ask(ctx, o, limitedHost)
	}
	after, failed := l.liveHeap(ctx)
	l.grown = after - before
	return errors.Join(err, failed)
}

// bars returns the bars for the p99 and for the memory of the limit.
func (l *limited) bars() []bar {
	slower := series{p99s(l.rounds[0]), p99s(l.rounds[1])}
	work := thousands(manyAddresses) + " addresses at one limit"
	memory := bar{Work: "memory of " + work, Bar: "under " + megabytes(maxLimitMemory),
		Measured: megabytesOf(float64(l.grown))}
	return []bar{slower.atMost("p99 with "+work+", of none", maxLimitSlowdown), held(memory, l.grown < maxLimitMemory)}
}

// write prints the figures as Markdown.
func (l *limited) write(o options, out io.Writer) error {
	limit, none := medianOf(l.rounds[0]), medianOf(l.rounds[1])
	_, err := fmt.Fprintf(out,
		"\n## A limit and many addresses\n\n%s addresses are used in turn, in X-Forwarded-For, and the limit keeps "+
			"the state of all of them. %d keep-alive connections. Medians of %d rounds in turn, %v each.\n\n"+
			"| | requests/s | p50 | p99 |\n| --- | ---: | ---: | ---: |\n%s%s\nAll of them take %s.\n",
		thousands(manyAddresses), o.connections, o.rounds, o.duration,
		row("limit", rateCell(l.rounds[0]), milliseconds(limit.p50), milliseconds(limit.p99)),
		row("none", rateCell(l.rounds[1]), milliseconds(none.p50), milliseconds(none.p99)),
		megabytesOf(float64(l.grown)))
	return err
}
