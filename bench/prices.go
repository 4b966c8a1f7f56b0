package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// price compares requests with a feature and without it.
type price struct {
	work    string
	minimum float64
	// sides holds the requests with the feature and without it. rounds holds the figures of each side.
	sides  [2]asked
	rounds [2][]figures
}

// asked is a kind of request that is sent to one contestant.
type asked struct {
	c    *contestant
	load func(o options) load
}

// of returns short GETs for a host of the contestant.
func (c *contestant) of(host int) asked {
	return asked{c, func(o options) load { return c.load(o, host) }}
}

// texts returns GETs for a long text, whose response must be compressed.
func (c *contestant) texts() asked {
	return asked{c, func(o options) load {
		l := c.load(o, plainHost)
		l.path, l.body, l.compressed, l.header = textPath, longText, true, "Accept-Encoding: gzip"
		return l
	}}
}

// annotation is a group of annotations that together configure one feature.
type annotation struct {
	name    string
	minimum float64
	lines   []string
}

const (
	// alone is the minimum ratio of requests per second with one group of annotations to those without annotations.
	// together is the minimum ratio with all groups.
	alone, together = 0.93, 0.80
	// kept is the minimum ratio with external authentication whose responses are cached. questioned is the minimum
	// ratio if the service gets a request each time; this machine then handles twice as many requests.
	kept, questioned = 0.85, 0.45
	// logged is the minimum ratio of requests per second with an access log to those without one. compressed is the
	// minimum ratio of compressed responses to those of stock Caddy.
	logged, compressed = 0.90, 0.90
	// loggedByCaddy is the minimum ratio with an access log in Caddy's format to a log in ingress-nginx's format.
	loggedByCaddy = 0.85
)

// ordinary lists groups of annotations that an Ingress may well have together.
var ordinary = []annotation{
	{"redirect to HTTPS", alone, []string{`force-ssl-redirect: "true"`}},
	{"CORS", alone, []string{`enable-cors: "true"`, `cors-allow-origin: "` + origin + `"`}},
	{"rewrite", alone, []string{"rewrite-target: /changed"}},
	{"size of bodies", alone, []string{"proxy-body-size: 8m"}},
	{"timeouts", alone, []string{`proxy-connect-timeout: "2"`, `proxy-read-timeout: "20"`, `proxy-send-timeout: "20"`}},
	{"allowlist", alone, []string{`allowlist-source-range: "10.0.0.0/8,11.0.0.0/8,192.168.0.0/16"`}},
	{"limit of requests per second", alone, []string{`limit-rps: "100000"`}},
	{"basic auth by bcrypt, verified before", alone, []string{"auth-type: basic", "auth-secret: users"}},
}

// annotationsOf returns all groups of annotations that are measured. The backend is also the service for external
// authentication.
func annotationsOf(backend string) []annotation {
	all := annotation{name: "all of these", minimum: together}
	for _, each := range ordinary {
		all.lines = append(all.lines, each.lines...)
	}
	auth := `auth-url: "http://` + backend + `/auth"`
	return append(ordinary[:len(ordinary):len(ordinary)], all,
		annotation{"auth-url, kept answers", kept, []string{auth, "auth-cache-key: $remote_addr$http_authorization"}},
		annotation{"auth-url, asked each time", questioned, []string{auth}})
}

const (
	origin = "https://shop.example"
	// userName and password are the credentials in each request.
	userName, password = "alice", "correct horse"
)

// annotatedHeader has the header lines of all requests, with and without annotations.
var annotatedHeader = strings.Join([]string{
	forwardedFor + "100.100.100", "X-Forwarded-Proto: https", "Origin: " + origin,
	"Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(userName+":"+password)),
}, "\r\n")

// trustedProxy is a ConfigMap that trusts X-Forwarded-For headers from this machine.
const trustedProxy = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: controller, namespace: bench}
data: {use-forwarded-headers: "true", proxy-real-ip-cidr: 127.0.0.0/8}
`

// gzipLevel is the compression level of both sides.
const gzipLevel = 5

// compresses is a ConfigMap that enables gzip. Its value is the level.
const compresses = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: controller, namespace: bench}
data: {use-gzip: "true", gzip-level: "%d"}
`

// users is the Secret for basic authentication. Its value has the htpasswd format.
const users = `---
apiVersion: v1
kind: Secret
metadata: {name: users, namespace: bench}
stringData: {auth: %q}
`

// prices holds all comparisons and their contestants. All contestants run during the whole measurement, but only the
// measured one is not paused.
type prices struct {
	contestants []*contestant
	all         []*price
}

// comparePrices measures the cost of annotations, the access log and compression, prints the figures, and returns the
// bars.
func comparePrices(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	p := &prices{}
	defer p.stop()
	if err := p.start(ctx, s.in("prices")); err != nil {
		return nil, err
	}
	o = o.inShortRounds()
	if err := p.measure(ctx, o); err != nil {
		return nil, err
	}
	return p.bars(), p.write(o, "What annotations and keys cost", out)
}

// inShortRounds returns options with more and shorter rounds, which take as long in total. Other work on the machine
// then affects both sides of a round more evenly, and single rounds affect the median less.
func (o options) inShortRounds() options {
	const times = 5
	o.rounds, o.duration = o.rounds*times, o.duration/times
	return o
}

// measure measures all rounds of all comparisons.
func (p *prices) measure(ctx context.Context, o options) error {
	for round := range o.rounds {
		for _, each := range p.all {
			if err := each.measure(ctx, o, round); err != nil {
				return fmt.Errorf("%s: %w", each.work, err)
			}
		}
	}
	return nil
}

func (p *prices) stop() {
	for _, c := range p.contestants {
		c.stop()
	}
}

func (p *prices) start(ctx context.Context, s site) error {
	objects, err := annotatedObjects(s.backend)
	if err != nil {
		return err
	}
	ours, err := p.add(startOurs(ctx, s, "annotated", s.one(objects)))
	if err != nil {
		return err
	}
	ours.header = annotatedHeader
	for i, each := range annotationsOf(s.backend) {
		work := each.name + ", of no annotations"
		p.all = append(p.all, &price{work: work, minimum: each.minimum,
			sides: [2]asked{ours.of(firstAnnotated + i), ours.of(plainHost)}})
	}
	return errors.Join(p.startLogging(ctx, s), p.startCompressing(ctx, s))
}

// firstAnnotated is the number of the host for the first group of annotations. Hosts are counted from 1.
const firstAnnotated = 2

// annotatedObjects returns an Ingress for each group of annotations, and the objects that they refer to.
func annotatedObjects(backend string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(trustedProxy)
	fmt.Fprintf(&text, users, userName+":"+string(hash))
	for i, each := range annotationsOf(backend) {
		fmt.Fprintf(&text, ingress, firstAnnotated+i, hostName(firstAnnotated+i), 1, annotated(each.lines...))
	}
	return text.String(), nil
}

// one returns applications with one host, and more objects.
func (s site) one(more string) applications {
	return applications{hosts: 1, endpoints: 1, backend: s.backend, more: more}
}

// add registers a contestant, so that it is stopped at the end even if it has not started.
func (p *prices) add(c *contestant, err error) (*contestant, error) {
	p.contestants = append(p.contestants, installed(c)...)
	return c, err
}

// startLogging starts three contestants: with the access log in ingress-nginx's format, in Caddy's format, and without
// an access log. Both logs end in a file.
func (p *prices) startLogging(ctx context.Context, s site) error {
	nginx, err := p.startWithLog(ctx, s, "nginx-log", "")
	if err != nil {
		return err
	}
	caddy, err := p.startWithLog(ctx, s, "caddy-log", "access_log caddy")
	if err != nil {
		return err
	}
	silent, err := p.add(startOurs(ctx, s, "silent", s.one("")))
	p.all = append(p.all,
		&price{work: "access log in the default format, of none", minimum: logged,
			sides: [2]asked{nginx.of(plainHost), silent.of(plainHost)}},
		&price{work: "access log in Caddy's format, of the default format", minimum: loggedByCaddy,
			sides: [2]asked{caddy.of(plainHost), nginx.of(plainHost)}})
	return err
}

// startWithLog starts a contestant with another option in place of "access_log off".
func (p *prices) startWithLog(ctx context.Context, s site, name, option string) (*contestant, error) {
	c, err := newContestant(s.folder, name, 1)
	if err != nil {
		return nil, err
	}
	text := strings.Replace(string(c.caddyfile()), "access_log off", option, 1)
	return p.add(c, c.startWith(ctx, s, s.one(""), []byte(text)))
}

// startCompressing starts a contestant that compresses responses, and stock Caddy with a handler that does the same.
func (p *prices) startCompressing(ctx context.Context, s site) error {
	ours, err := p.add(startOurs(ctx, s, "compressing", s.one(fmt.Sprintf(compresses, gzipLevel))))
	if err != nil {
		return err
	}
	stock, err := newContestant(s.folder, "stock", 1)
	if err != nil {
		return err
	}
	config, err := json.Marshal(encodingConfig(stock, s.backend))
	if err == nil {
		_, err = p.add(stock, stock.start(ctx, s.caddy(stock.folder, "caddy.json"), config, stock.servesFirst))
	}
	work := fmt.Sprintf("gzip of %d KiB at level %d, of stock Caddy's encode", len(longText)>>10, gzipLevel)
	p.all = append(p.all, &price{work: work, minimum: compressed, sides: [2]asked{ours.texts(), stock.texts()}})
	return err
}

// encodingConfig returns a Caddy configuration with the encode handler before the proxy.
func encodingConfig(c *contestant, backend string) object {
	config := plainConfig(c.admin, c.http, 1, backend)
	server := branch(config, "apps", "http", "servers", "bench")
	encode := object{"handler": "encode", "encodings": object{"gzip": object{"level": gzipLevel}},
		"prefer": []string{"gzip"}}
	for _, route := range server["routes"].([]object) {
		route["handle"] = append([]object{encode}, route["handle"].([]object)...)
	}
	return config
}

// measure adds one round of both sides.
func (p *price) measure(ctx context.Context, o options, round int) error {
	return inTurn(round, func(side int) error {
		of := p.sides[side]
		f, err := of.c.awake(func() (figures, error) { return of.load(o).run(ctx) })
		p.rounds[side] = append(p.rounds[side], f)
		return err
	})
}

// bars returns the bars of all comparisons.
func (p *prices) bars() []bar {
	bars := make([]bar, 0, len(p.all))
	for _, each := range p.all {
		bars = append(bars, atLeast(each.work, each.minimum, each.rounds[0], each.rounds[1]))
	}
	return bars
}

// write prints the figures as Markdown, below the given title.
func (p *prices) write(o options, title string, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## %s\n\nRequests per second with something and without it, or of stock "+
			"Caddy, and in brackets the processor time of the proxy for one. %d keep-alive connections, and the "+
			"same requests to both sides. Medians of %d rounds in turn, %v each; ratios are medians of each "+
			"round's. Clients, backend and proxy share %d processors.\n\n"+
			"| | with | without | requests/s | processor time |\n| --- |%s\n", title, o.connections, o.rounds,
		o.duration, runtime.NumCPU(), strings.Repeat(" ---: |", 4))
	for _, each := range p.all {
		with, without := each.rounds[0], each.rounds[1]
		text.WriteString(row(each.work, rateCell(with), rateCell(without), fmt.Sprintf("%.2f", ratio(with, without)),
			processorRatio(with, without)))
	}
	_, err := io.WriteString(out, text.String())
	return err
}
