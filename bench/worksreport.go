package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// bars returns the bars for all works.
func (p *proxies) bars() []bar {
	var bars []bar
	for i, w := range works {
		bars = append(bars, p.bar(i, w))
	}
	return append(bars, atLeast("three filters against none", 0.97, p.filtered[0], p.filtered[1]))
}

func (p *proxies) bar(i int, w work) bar {
	b := bar{Work: w.name + ", of nginx", Bar: fmt.Sprintf("at least %.2f", w.minimum)}
	switch {
	case p.nginx == nil:
		b.Measured = nginxMissing
		return b
	case len(p.ours.answered[i]) == 0:
		b.Measured = h2loadMissing
		return b
	}
	return atLeast(b.Work, w.minimum, p.ours.answered[i], p.nginx.answered[i])
}

// write prints the figures as Markdown.
func (p *proxies) write(o options, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"## Kinds of requests\n\nRequests per second, and in brackets the processor time of the proxy for one. "+
			"%d keep-alive connections unless the row says otherwise, responses of %d bytes. Metrics are enabled in "+
			"Caddy, access logs off in all; nginx and haproxy send the headers about the client that ingress-nginx "+
			"sends. Medians of %d rounds in another order each, %v each; ratios are medians of each round's. "+
			"Clients, backend and proxy share %d processors (%s/%s, %s).\n\n",
		o.connections, len(answerBody), o.rounds, o.duration, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version())
	text.WriteString(
		"| | k8singress | nginx | haproxy | plain Caddy | requests/s of nginx | processor time of nginx |\n| --- |" +
			strings.Repeat(" ---: |", 6) + "\n")
	for i, w := range works {
		text.WriteString(p.row(i, w))
	}
	for side, name := range []string{"short GET, three filters", "short GET, no filters, beside that"} {
		text.WriteString(row(name, rateCell(p.filtered[side]), "", "", "", "", ""))
	}
	for _, missing := range []struct {
		is  bool
		why string
	}{{p.nginx == nil, nginxMissing}, {p.haproxy == nil, haproxyMissing},
		{serverProgram("h2load") == "", h2loadMissing}} {
		if missing.is {
			fmt.Fprintf(&text, "\n%s\n", missing.why)
		}
	}
	text.WriteString("\n")
	_, err := io.WriteString(out, text.String())
	return err
}

// row returns the row of one work.
func (p *proxies) row(i int, w work) string {
	cells := []string{w.name}
	for _, c := range []*contestant{p.ours, p.nginx, p.haproxy, p.stock} {
		cells = append(cells, c.cell(i))
	}
	if p.nginx == nil || len(p.ours.answered[i]) == 0 {
		return row(append(cells, unknown, unknown)...)
	}
	ours, nginx := p.ours.answered[i], p.nginx.answered[i]
	return row(append(cells, fmt.Sprintf("%.2f", ratio(ours, nginx)), processorRatio(ours, nginx))...)
}

// cell returns the requests per second of a contestant in one work.
func (c *contestant) cell(i int) string {
	if c == nil || len(c.answered[i]) == 0 {
		return unknown
	}
	return rateCell(c.answered[i])
}

// rateCell returns the requests per second, and the processor time of one request.
func rateCell(rounds []figures) string {
	f := medianOf(rounds)
	return thousands(f.perSecond) + " (" + processorCell(f) + ")"
}
