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
	fmt.Fprintf(&text,
		"\n## TCP and UDP\n\nBulk TCP is %d connections that send as fast as they can; processor time is that of "+
			"the proxy and its children. A new connection carries a byte each way; %d clients make them. Medians of "+
			"%d rounds in turn, %v each; the ratios of k8singress to the others are below. Clients, backend and "+
			"proxy share %d processors.\n\n",
		bulkStreams, o.connections, o.rounds, o.duration, runtime.NumCPU())
	text.WriteString("| | bulk TCP | processor seconds per GB | connections/s | p99 |\n| --- |" +
		strings.Repeat(" ---: |", 4) + "\n")
	for _, each := range r.all() {
		text.WriteString(each.row())
	}
	fmt.Fprintf(&text,
		"\n%d clients send datagrams, and the backend sends each one back. In trains, clients and backend give the "+
			"kernel several as one message, and take them like that, as programs for QUIC do. The proxy has one "+
			"processor for itself; clients and backend have the others, and all of them without a proxy.\n\n|",
		datagramFlows)
	for _, load := range datagramLoads {
		fmt.Fprintf(&text, " | %s, datagrams/s | processor time of one", load)
	}
	text.WriteString(" | lost |\n| --- |" + strings.Repeat(" ---: |", 1+2*len(datagramLoads)) + "\n")
	for _, each := range r.all() {
		text.WriteString(each.datagramRow())
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

func (r *relay) row() string {
	const giga = 1e9
	economy := "-"
	if perProcessor := medianOf(r.economy).perSecond; perProcessor > 0 {
		economy = fmt.Sprintf("%.2f", giga/perProcessor)
	}
	connects := medianOf(r.connects)
	return row(r.name, fmt.Sprintf("%.1f Gbit/s", 8*medianOf(r.throughput).perSecond/giga), economy,
		thousands(connects.perSecond), milliseconds(connects.p99))
}

// datagramRow returns an empty row for a relay that only supports TCP.
func (r *relay) datagramRow() string {
	if r.udp == "" {
		return ""
	}
	cells := []string{r.name}
	for i, rounds := range r.datagrams {
		cells = append(cells, thousands(medianOf(rounds).perSecond), microseconds(medianOf(r.thrift[i]).perSecond))
	}
	return row(append(cells, thousands(float64(r.lost)))...)
}

func row(cells ...string) string { return "| " + strings.Join(cells, " | ") + " |\n" }

// microseconds returns the time of one operation, or "-" if it was not measured.
func microseconds(perSecond float64) string {
	if perSecond == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f µs", 1e6/perSecond)
}
