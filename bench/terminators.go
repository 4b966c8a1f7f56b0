package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// manySecrets is how many hosts have a certificate of their own, and rotated how many of those get another one under load.
	manySecrets = 10_000
	rotated     = 1_000
)

// plainTLS is the name of the contestant without a controller.
const plainTLS = "tls-plain"

// terminators are the contestants that make TLS handshakes. They run all the time, and all but one are paused.
type terminators struct {
	maker *maker
	// plain is Caddy with one certificate in its configuration; one and many have a Secret for each host.
	plain, one, many *contestant
	// rotation is what came of the handshakes while certificates were replaced, and took how long that was.
	rotation *tally
	took     time.Duration
}

// compareHandshakes measures them, prints the figures, and returns the bars that they are held to.
func compareHandshakes(ctx context.Context, o options, folder string, out io.Writer) ([]bar, error) {
	m, err := newMaker()
	if err != nil {
		return nil, err
	}
	t := &terminators{maker: m}
	defer t.stop()
	if err := t.start(ctx, site{binary: o.binary, folder: folder}); err != nil {
		return nil, err
	}
	for range o.rounds {
		for _, c := range t.all() {
			if err := c.measureHandshakes(ctx, o); err != nil {
				return nil, err
			}
		}
	}
	if err := t.rotate(ctx, o); err != nil {
		return nil, err
	}
	return t.bars(), t.write(o, out)
}

func (t *terminators) start(ctx context.Context, s site) error {
	var err error
	if t.plain, err = t.startPlain(ctx, s); err != nil {
		return err
	}
	if t.one, err = t.startOurs(ctx, s, "tls-1", 1); err != nil {
		return err
	}
	t.many, err = t.startOurs(ctx, s, fmt.Sprintf("tls-%d", manySecrets), manySecrets)
	return err
}

func (t *terminators) all() []*contestant { return []*contestant{t.plain, t.one, t.many} }

func (t *terminators) stop() {
	for _, c := range t.all() {
		if c != nil {
			c.stop()
		}
	}
}

// startPlain starts Caddy with one certificate.
func (t *terminators) startPlain(ctx context.Context, s site) (*contestant, error) {
	c, err := newContestant(s.folder, plainTLS, 1)
	if err != nil {
		return c, err
	}
	certificate, key, err := t.maker.issue(hostName(1))
	if err != nil {
		return c, err
	}
	config, err := json.Marshal(object{
		"admin": object{"listen": c.admin, "config": object{"persist": false}},
		"apps": object{
			"http": object{"metrics": object{}, "servers": object{"bench": object{
				"listen": []string{c.http}, "tls_connection_policies": []object{{}}, "automatic_https": object{"disable": true},
			}}},
			"tls": object{"disable_ocsp_stapling": true, "certificates": object{
				"load_pem": []object{{"certificate": string(certificate), "key": string(key)}},
			}},
		},
	})
	if err != nil {
		return c, err
	}
	return c, c.startTLS(ctx, s.caddy(c.folder, "caddy.json"), config)
}

// startOurs starts Caddy with a folder of Ingresses and Secrets.
func (t *terminators) startOurs(ctx context.Context, s site, name string, hosts int) (*contestant, error) {
	c, err := newContestant(s.folder, name, hosts)
	if err != nil {
		return c, err
	}
	if err := writeSecured(c.manifests(), t.maker, hosts); err != nil {
		return c, err
	}
	config := fmt.Sprintf("{\n\tadmin %s\n\tk8singress {\n\t\tmanifests %s\n\t\thttp off\n\t\thttps %s\n\t}\n}\n",
		c.admin, c.manifests(), c.http)
	return c, c.startTLS(ctx, s.caddy(c.folder, "Caddyfile"), []byte(config))
}

// startTLS runs the process until it shows the certificates of its hosts, and pauses it.
func (c *contestant) startTLS(ctx context.Context, s setup, config []byte) error {
	shows := func(ctx context.Context) bool {
		// Before a controller is ready some certificates may be missing.
		if c.name != plainTLS && !c.ready(ctx) {
			return false
		}
		_, first := handshake(c.http, hostName(1))
		_, last := handshake(c.http, hostName(c.hosts))
		return first == nil && last == nil
	}
	if err := c.launch(ctx, s, config, shows); err != nil {
		return err
	}
	return c.pause()
}

// measureHandshakes adds one round.
func (c *contestant) measureHandshakes(ctx context.Context, o options) error {
	if err := c.resume(); err != nil {
		return err
	}
	result := handshakes{o.repetition(), c.http, c.hosts}.count(ctx)
	if err := errors.Join(ctx.Err(), result.first); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	c.first = append(c.first, result.figures)
	return c.pause()
}

// rotate replaces certificates while handshakes go on, and waits until the new ones are shown.
func (t *terminators) rotate(ctx context.Context, o options) error {
	if err := t.many.resume(); err != nil {
		return err
	}
	before := t.maker.serial
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan *tally, 1)
	go func() {
		endless := repetition{clients: o.connections, duration: patience, tolerant: true}
		ended <- handshakes{endless, t.many.http, manySecrets}.count(limited)
	}()
	begin := time.Now()
	if err := writeSecrets(t.many.manifests(), t.maker, rotated); err != nil {
		return err
	}
	for _, host := range []int{1, rotated / 2, rotated} {
		shown := func(context.Context) bool {
			serial, err := handshake(t.many.http, hostName(host))
			return err == nil && serial > before
		}
		if err := t.many.process.await(ctx, shown); err != nil {
			return fmt.Errorf("waiting for the new certificate of host %d: %w", host, err)
		}
	}
	t.took = time.Since(begin)
	// What comes right after it counts, too.
	wait(ctx, time.Now().Add(o.duration))
	cancel()
	t.rotation = <-ended
	return t.many.pause()
}

// bars are those that they are held to.
func (t *terminators) bars() []bar {
	rotation := bar{
		Work:     fmt.Sprintf("handshakes while %s Secrets of %s get other certificates", thousands(rotated), thousands(manySecrets)),
		Bar:      "none fails",
		Measured: fmt.Sprintf("%d of %s failed", t.rotation.failed, thousands(float64(len(t.rotation.latencies)+t.rotation.failed))),
	}
	if t.rotation.failed > 0 {
		rotation.Measured += fmt.Sprintf(" (%v)", t.rotation.first)
	}
	work := fmt.Sprintf("handshakes per second with %s Secrets", thousands(manySecrets))
	return []bar{
		atLeast(work+" against 1", 0.95, t.many.first, t.one.first),
		atLeast(work+" against stock Caddy with 1 certificate", 0.95, t.many.first, t.plain.first),
		held(rotation, t.rotation.failed == 0),
	}
}

// write prints the figures as Markdown.
func (t *terminators) write(o options, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n## TLS handshakes\n\n%d clients, each handshake a full one on a new connection: TLS 1.3, keys of P-256, X25519. "+
		"Medians of %d rounds in turn, %v each; ratios are medians of each round's.\n\n"+
		"| | certificates | handshakes/s | ratio to plain | p99 |\n| --- | ---: | ---: | ---: | ---: |\n", o.connections, o.rounds, o.duration)
	for _, row := range []struct {
		name string
		c    *contestant
	}{{"plain Caddy", t.plain}, {"k8singress", t.one}, {"k8singress", t.many}} {
		f := medianOf(row.c.first)
		fmt.Fprintf(&text, "| %s | %s | %s | %.2f | %s |\n", row.name, thousands(float64(row.c.hosts)), thousands(f.perSecond),
			ratio(row.c.first, t.plain.first), milliseconds(f.p99))
	}
	fmt.Fprintf(&text, "\n%s Secrets were changed under load, and the new certificates shown %v after that began.\n",
		thousands(rotated), t.took.Round(10*time.Millisecond))
	_, err := io.WriteString(out, text.String())
	return err
}
