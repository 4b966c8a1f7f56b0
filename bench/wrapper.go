package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// fronts holds the contestants for HTTPS requests: k8singress with its listener wrapper and without it.
type fronts struct {
	with, without *front
	// passing also has a host with TLS passthrough.
	passing *front
}

// front is one contestant.
type front struct {
	*contestant
	// handshakes holds the figures of each round for handshakes. The figures for requests are in the field first.
	handshakes []figures
}

// compareWrapper measures the cost of the listener wrapper for HTTPS, prints the figures, and returns the bars.
func compareWrapper(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	f := &fronts{}
	defer f.stop()
	if err := f.start(ctx, s.in("fronts")); err != nil {
		return nil, err
	}
	for range o.rounds {
		for _, each := range f.all() {
			if err := each.measureFront(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	return f.bars(), f.write(o, out)
}

func (f *fronts) all() []*front {
	return slices.DeleteFunc([]*front{f.without, f.with, f.passing}, func(f *front) bool { return f == nil })
}

func (f *fronts) stop() {
	for _, each := range f.all() {
		each.stop()
	}
}

func (f *fronts) start(ctx context.Context, s site) error {
	var err error
	if f.with, err = startFront(ctx, s, "with", "", keep); err != nil {
		return err
	}
	if f.without, err = startFront(ctx, s, "without", "", withoutWrapper); err != nil {
		return err
	}
	f.passing, err = startFront(ctx, s, "with-passthrough", passedOn, keep)
	return err
}

// passedOn is an Ingress of another host with TLS passthrough. No requests are sent to it.
const passedOn = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: passed-on
  namespace: bench
  annotations: {nginx.ingress.kubernetes.io/ssl-passthrough: "true"}
spec:
  ingressClassName: nginx
  rules:
    - host: passed-on.bench.test
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app, port: {number: 80}}}}]}
`

// securedEndpoint is the endpoint of the Service for these Ingresses. Its value is the port.
const securedEndpoint = `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: app, namespace: bench, labels: {kubernetes.io/service-name: app}}
addressType: IPv4
endpoints: [{addresses: ["127.0.0.1"], conditions: {ready: true}}]
ports: [{port: %s}]
`

// frontOptions is a Caddyfile in which passthrough is enabled. Its values are the address of the admin API, the folder
// of manifests, and the address to listen on.
const frontOptions = `{
	admin %s
	k8singress {
		reach_allow 127.0.0.0/8
		manifests %s
		http off
		https %s
		ssl_passthrough
	}
}
`

// startFront starts Caddy with one HTTPS host and more manifests. change can modify the configuration first.
func startFront(ctx context.Context, s site, name, more string, change func(object)) (*front, error) {
	c, err := newContestant(s.folder, name, 1)
	if err != nil {
		return nil, err
	}
	f := &front{contestant: c}
	m, err := newMaker()
	if err != nil {
		return f, err
	}
	if err := writeSecured(c.manifests(), m, 1); err != nil {
		return f, err
	}
	if err := writeManifest(c.manifests(), fmt.Sprintf(securedEndpoint, portOf(s.backend))+more); err != nil {
		return f, err
	}
	config, err := adapted(ctx, s, c, fmt.Sprintf(frontOptions, c.admin, c.manifests(), c.http), change)
	if err != nil {
		return f, err
	}
	return f, c.startTLS(ctx, s.caddy(c.folder, "caddy.json"), config)
}

// adapted returns the JSON of a Caddyfile after change has modified it.
func adapted(ctx context.Context, s site, c *contestant, text string, change func(object)) ([]byte, error) {
	path := filepath.Join(c.folder, "Caddyfile")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return nil, err
	}
	data, err := exec.CommandContext(ctx, s.binary, "adapt", "--config", path).Output()
	if err != nil {
		return nil, fmt.Errorf("adapting %s: %w", path, err)
	}
	var config object
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, err
	}
	change(config)
	return json.Marshal(config)
}

func keep(object) {}

// withoutWrapper removes the listener wrappers: ours, and the TLS wrapper, which Caddy adds by default. It also turns
// off the admin API for the controller, which would use it to restore the wrappers.
func withoutWrapper(config object) {
	branch(config, "apps", "k8singress")["admin"] = "off"
	for _, server := range branch(config, "apps", "http", "servers") {
		delete(server.(object), "listener_wrappers")
	}
}

// measureFront adds one round of requests and one round of handshakes.
func (f *front) measureFront(ctx context.Context, o options) error {
	if err := f.resume(); err != nil {
		return err
	}
	requests := load{
		address: f.http, secure: true, hosts: []string{hostName(1)}, body: answerBody,
		connections: o.connections, warmUp: o.duration / 3, duration: o.duration,
	}
	answered, err := requests.run(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	shaken := handshakes{o.repetition(nil), f.http, 1}.count(ctx)
	if err := errors.Join(ctx.Err(), shaken.first); err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	f.first, f.handshakes = append(f.first, answered), append(f.handshakes, shaken.figures)
	return f.pause()
}

// bars returns the bars for the listener wrapper.
func (f *fronts) bars() []bar {
	return []bar{atLeast("HTTPS requests through the listener wrapper against none", 0.98, f.with.first,
		f.without.first)}
}

// write prints the figures as Markdown.
func (f *fronts) write(o options, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## HTTPS through the listener wrapper\n\nThe same binary with the listener wrapper, which is always "+
			"there, and without it. %d keep-alive connections and as many clients that make full handshakes. "+
			"Medians of %d rounds in turn, %v each; ratios are medians of each round's.\n\n"+
			"| | requests/s | ratio | p99 | handshakes/s | ratio |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
		o.connections, o.rounds, o.duration)
	for _, each := range f.all() {
		requests, shaken := medianOf(each.first), medianOf(each.handshakes)
		fmt.Fprintf(&text, "| %s | %s | %.2f | %s | %s | %.2f |\n", each.name, thousands(requests.perSecond),
			ratio(each.first, f.without.first),
			milliseconds(requests.p99), thousands(shaken.perSecond), ratio(each.handshakes, f.without.handshakes))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
