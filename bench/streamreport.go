package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
)

// write prints the figures as Markdown.
func (r *relays) write(o options, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n## TCP and UDP\n\nBulk TCP is %d connections that send as fast as they can; processor time is that of the proxy "+
		"and its children. A new connection carries a byte each way; %d clients make them. UDP is %d clients, and the backend "+
		"sends each datagram back. Medians of %d rounds in turn, %v each; the ratios of k8singress to the others are below. "+
		"Clients, backend and proxy share %d processors.\n\n",
		bulkStreams, o.connections, datagramFlows, o.rounds, o.duration, runtime.NumCPU())
	text.WriteString("| | bulk TCP | processor seconds per GB | connections/s | p99 |")
	for _, size := range datagramSizes {
		fmt.Fprintf(&text, " datagrams/s, %s B | processor time of one |", thousands(float64(size.bytes)))
	}
	text.WriteString(" lost |\n| --- |" + strings.Repeat(" ---: |", 5+2*len(datagramSizes)) + "\n")
	for _, each := range r.all() {
		each.writeRow(&text)
	}
	for _, missing := range []struct {
		relay *relay
		why   string
	}{{r.nginx, nginxStreamMissing}, {r.haproxy, haproxyMissing}} {
		if missing.relay == nil {
			fmt.Fprintf(&text, "\n%s\n", missing.why)
		}
	}
	_, err := io.WriteString(out, text.String())
	return err
}

func (r *relay) writeRow(text *strings.Builder) {
	const giga = 1e9
	economy := "-"
	if perProcessor := medianOf(r.economy).perSecond; perProcessor > 0 {
		economy = fmt.Sprintf("%.2f", giga/perProcessor)
	}
	connects := medianOf(r.connects)
	cells := []string{
		r.name, fmt.Sprintf("%.1f Gbit/s", 8*medianOf(r.throughput).perSecond/giga), economy,
		thousands(connects.perSecond), milliseconds(connects.p99),
	}
	lost := "-"
	for i, rounds := range r.datagrams {
		number, each := "-", "-"
		if r.udp != "" {
			number, each, lost = thousands(medianOf(rounds).perSecond), microseconds(medianOf(r.thrift[i]).perSecond), thousands(float64(r.lost))
		}
		cells = append(cells, number, each)
	}
	fmt.Fprintf(text, "| %s |\n", strings.Join(append(cells, lost), " | "))
}

// microseconds is how long one takes, or nothing where that is not known.
func microseconds(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f µs", 1e6/perSecond)
}
