package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
)

// compareStreams measures proxies for TCP and UDP, prints the figures, and returns the bars.
func compareStreams(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	missing := bar{Work: "TCP and UDP", Bar: "see the README", Measured: "left out"}
	switch {
	case o.noStreams:
		return []bar{missing}, nil
	case runtime.GOOS != "linux":
		missing.Measured = "only Linux reports the processor time of a process and its children"
		return []bar{missing}, nil
	}
	var bars []bar
	parts := append([]comparison{withStreamBackend(compareRelays), withStreamBackend(comparePorts)},
		withBackend(compareWrapper)...)
	for _, part := range parts {
		more, err := part(ctx, o, folder, out)
		if err != nil {
			return nil, err
		}
		bars = append(bars, more...)
	}
	return bars, nil
}

// streamComparison is a comparison that uses a given backend.
type streamComparison func(ctx context.Context, o options, backend *streamBackend, folder string, out io.Writer) ([]bar,
	error)

// withStreamBackend returns a comparison that starts a backend for compare.
func withStreamBackend(compare streamComparison) comparison {
	return func(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
		backend, err := startStreamBackend()
		if err != nil {
			return nil, err
		}
		defer backend.stop()
		return compare(ctx, o, backend, folder, out)
	}
}

// relays holds the contestants for TCP and UDP. All processes run during the whole measurement, but only the measured
// one is not paused.
type relays struct {
	backend     *streamBackend
	ours, stock *relay
	// nginx and haproxy are nil if they are not installed.
	nginx, haproxy *relay
	// none is the connection to the backend without a proxy.
	none *relay
}

func compareRelays(ctx context.Context, o options, backend *streamBackend, folder string,
	out io.Writer) ([]bar, error) {
	r := &relays{backend: backend, none: direct(backend)}
	defer r.stop()
	if err := r.start(ctx, site{binary: o.binary, folder: filepath.Join(folder, "streams")}); err != nil {
		return nil, err
	}
	for range o.rounds {
		for _, each := range r.all() {
			if err := each.measureRelay(ctx, o, backend); err != nil {
				return nil, err
			}
		}
	}
	return r.bars(), r.write(o, out)
}

func (r *relays) start(ctx context.Context, s site) error {
	for _, each := range []struct {
		into  **relay
		start startRelay
	}{{&r.ours, startOurRelay}, {&r.stock, startStockRelay}, {&r.nginx, startNginxRelay},
		{&r.haproxy, startHAProxyRelay}} {
		var err error
		if *each.into, err = each.start(ctx, s, r.backend); err != nil {
			return err
		}
	}
	return nil
}

type startRelay func(context.Context, site, *streamBackend) (*relay, error)

// all returns the installed relays in the order of a round.
func (r *relays) all() []*relay {
	all := []*relay{r.none, r.haproxy, r.nginx, r.ours, r.stock}
	return slices.DeleteFunc(all, func(r *relay) bool { return r == nil })
}

func (r *relays) stop() {
	for _, each := range r.all() {
		each.stop()
	}
}

// rivalry compares one figure of our relay with another relay.
type rivalry struct {
	work  string
	limit float64
	// cost reports whether limit is an upper limit.
	cost bool
	// to is the other relay. If it is nil, missing is the reason.
	to      *relay
	missing string
	of      func(*relay) []figures
}

func (r *relays) rivalries() []rivalry {
	economy := func(r *relay) []figures { return r.economy }
	throughput := func(r *relay) []figures { return r.throughput }
	all := []rivalry{
		{"processor time of bulk TCP, against stock caddy-l4", 0.6, true, r.stock, "", economy},
		{"processor time of bulk TCP, against nginx", 1.1, true, r.nginx, nginxStreamMissing, economy},
		{"bulk TCP, against stock caddy-l4", 1.8, false, r.stock, "", throughput},
		{"bulk TCP, against nginx", 0.95, false, r.nginx, nginxStreamMissing, throughput},
		{"bulk TCP, against haproxy", 0.95, false, r.haproxy, haproxyMissing, throughput},
		{"new connections, against nginx", 0.7, false, r.nginx, nginxStreamMissing,
			func(r *relay) []figures { return r.connects }},
	}
	for i, load := range datagramLoads {
		work := fmt.Sprintf("UDP, %s, against ", load)
		packets := func(r *relay) []figures { return r.datagrams[i] }
		all = append(all, rivalry{work + "stock caddy-l4", 2, false, r.stock, "", packets},
			rivalry{work + "nginx", 0.8, false, r.nginx, nginxStreamMissing, packets})
	}
	return all
}

// bars returns the bars of all comparisons.
func (r *relays) bars() []bar {
	var bars []bar
	for _, c := range r.rivalries() {
		compare, bound := atLeast, "at least"
		if c.cost {
			compare, bound = atMost, "at most"
		}
		b := bar{Work: c.work, Bar: fmt.Sprintf("%s %.2f", bound, c.limit), Measured: c.missing}
		if c.to != nil {
			b = compare(c.work, c.limit, c.of(r.ours), c.of(c.to))
		}
		bars = append(bars, b)
	}
	return bars
}
