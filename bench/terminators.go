package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// manySecrets is the number of hosts with a certificate in a Secret. replaced is the number of certificates that
	// are replaced under load.
	manySecrets = 10_000
	replaced    = 1_000
)

// plainTLS is the name of the contestant without a controller.
const plainTLS = "tls-plain"

// terminators holds the contestants for TLS handshakes. All processes run during the whole measurement, but only the
// measured one is not paused.
type terminators struct {
	maker *maker
	// plain is Caddy with one certificate in its configuration. one and many have a Secret for each host.
	plain, one, many *contestant
	// nginx and haproxy have one certificate. They are nil if they are not installed.
	nginx, haproxy *contestant
	// rotation is the result of the handshakes while certificates are replaced. took is the time until all new
	// certificates are in use.
	rotation *tally
	took     time.Duration
}

// compareHandshakes measures handshakes, prints the figures, and returns the bars.
func compareHandshakes(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	m, err := newMaker()
	if err != nil {
		return nil, err
	}
	t := &terminators{maker: m}
	defer t.stop()
	if err := t.start(ctx, s.in("handshakes")); err != nil {
		return nil, err
	}
	for round := range o.rounds {
		for _, c := range rotated(t.all(), round) {
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
	if err := t.startOthers(ctx, s); err != nil {
		return err
	}
	if t.one, err = t.startOurs(ctx, s, "tls-1", 1); err != nil {
		return err
	}
	t.many, err = t.startOurs(ctx, s, fmt.Sprintf("tls-%d", manySecrets), manySecrets)
	return err
}

// startOthers starts nginx and haproxy with a certificate of the first host.
func (t *terminators) startOthers(ctx context.Context, s site) error {
	certificate, key, err := t.maker.issue(hostName(1))
	if err != nil {
		return err
	}
	both := filepath.Join(s.folder, "certificate.pem")
	err = errors.Join(os.MkdirAll(s.folder, 0o755), os.WriteFile(both, append(certificate, key...), 0o600))
	if err != nil {
		return err
	}
	if t.nginx, err = startNginx(ctx, s, both); err != nil {
		return err
	}
	t.haproxy, err = startHAProxy(ctx, s, both)
	return err
}

// all returns the installed contestants in the order of a round. Contestants that are compared are next to each other.
func (t *terminators) all() []*contestant {
	return installed(t.plain, t.many, t.one, t.nginx, t.haproxy)
}

func (t *terminators) stop() {
	for _, c := range t.all() {
		c.stop()
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
				"listen": []string{c.https}, "tls_connection_policies": []object{{}},
				"automatic_https": object{"disable": true},
			}}},
			"tls": plainTLSApp(certificate, key),
		},
	})
	if err != nil {
		return c, err
	}
	return c, c.startTLS(ctx, s.caddy(c.folder, "caddy.json"), config)
}

// plainTLSApp returns the configuration of Caddy's TLS app with one certificate.
func plainTLSApp(certificate, key []byte) object {
	pair := object{"certificate": string(certificate), "key": string(key)}
	return object{"disable_ocsp_stapling": true, "certificates": object{"load_pem": []object{pair}}}
}

// startOurs starts Caddy as a controller for a folder of Ingresses and Secrets.
func (t *terminators) startOurs(ctx context.Context, s site, name string, hosts int) (*contestant, error) {
	c, err := newContestant(s.folder, name, hosts)
	if err != nil {
		return c, err
	}
	if err := writeSecured(c.manifests(), t.maker, hosts); err != nil {
		return c, err
	}
	config := fmt.Sprintf(
		"{\n\tadmin %s\n\tk8singress {\n\t\treach_allow 127.0.0.0/8\n\t\tmanifests %s\n\t\thttp off\n\t\thttps "+
			"%s\n\t}\n}\n",
		c.admin, c.manifests(), c.https)
	return c, c.startTLS(ctx, s.caddy(c.folder, "Caddyfile"), []byte(config))
}

// startTLS runs the process, waits until it presents the certificates of its hosts, and pauses it.
func (c *contestant) startTLS(ctx context.Context, s setup, config []byte) error {
	shows := func(ctx context.Context) bool {
		// Before a controller is ready, some certificates may be missing.
		if c.name != plainTLS && !c.ready(ctx) {
			return false
		}
		_, first := handshake(c.https, hostName(1))
		_, last := handshake(c.https, hostName(c.hosts))
		return first == nil && last == nil
	}
	if err := c.launch(ctx, s, config, shows); err != nil {
		return err
	}
	return c.pause()
}

// measureHandshakes adds one round.
func (c *contestant) measureHandshakes(ctx context.Context, o options) error {
	f, err := c.awake(func() (figures, error) {
		result := handshakes{o.repetition(c.process), c.https, c.hosts}.count(ctx)
		return result.figures, errors.Join(ctx.Err(), result.first)
	})
	c.first = append(c.first, f)
	return err
}

// rotate replaces certificates during handshakes, and waits until the new certificates are in use.
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
		ended <- handshakes{endless, t.many.https, manySecrets}.count(limited)
	}()
	begin := time.Now()
	if err := writeSecrets(t.many.manifests(), t.maker, replaced); err != nil {
		return err
	}
	for _, host := range []int{1, replaced / 2, replaced} {
		shown := func(context.Context) bool {
			serial, err := handshake(t.many.https, hostName(host))
			return err == nil && serial > before
		}
		if err := t.many.process.await(ctx, shown); err != nil {
			return fmt.Errorf("waiting for the new certificate of host %d: %w", host, err)
		}
	}
	t.took = time.Since(begin)
	// Handshakes right after the replacement belong to the measurement, too.
	wait(ctx, time.Now().Add(o.duration))
	cancel()
	t.rotation = <-ended
	return t.many.pause()
}

// bars returns the bars for handshakes.
func (t *terminators) bars() []bar {
	rotation := bar{
		Work: fmt.Sprintf("handshakes while the certificates of %s of %s Secrets are replaced", thousands(replaced),
			thousands(manySecrets)),
		Bar: "none fails",
		Measured: fmt.Sprintf("%d of %s failed", t.rotation.failed,
			thousands(float64(len(t.rotation.latencies)+t.rotation.failed))),
	}
	if t.rotation.failed > 0 {
		rotation.Measured += fmt.Sprintf(" (%v)", t.rotation.first)
	}
	work := fmt.Sprintf("handshakes per second with %s Secrets", thousands(manySecrets))
	return []bar{
		atLeast(work+" against 1", 0.95, t.many.first, t.one.first),
		atLeast(work+" against stock Caddy with 1 certificate", 0.95, t.many.first, t.plain.first),
		t.againstNginx(),
		held(rotation, t.rotation.failed == 0),
	}
}

func (t *terminators) againstNginx() bar {
	const work, minimum = "handshakes per second with 1 certificate, of nginx", 1.05
	if t.nginx == nil {
		return bar{Work: work, Bar: fmt.Sprintf("at least %.2f", minimum), Measured: nginxMissing}
	}
	return atLeast(work, minimum, t.one.first, t.nginx.first)
}

// write prints the figures as Markdown.
func (t *terminators) write(o options, out io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text,
		"\n## TLS handshakes\n\n%d clients, each handshake a full one on a new connection: TLS 1.3, keys of P-256, "+
			"X25519. Medians of %d rounds in turn, %v each; ratios are medians of each round's.\n\n"+
			"| | certificates | handshakes/s | processor time of one | ratio to plain | p99 |\n| --- | ---: | ---: "+
			"| ---: | ---: | ---: |\n",
		o.connections, o.rounds, o.duration)
	for _, row := range []struct {
		name string
		c    *contestant
	}{{"plain Caddy", t.plain}, {"k8singress", t.one}, {"k8singress", t.many}, {"nginx", t.nginx},
		{"haproxy", t.haproxy}} {
		if row.c == nil {
			continue
		}
		f := medianOf(row.c.first)
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %.2f | %s |\n", row.name, thousands(float64(row.c.hosts)),
			thousands(f.perSecond),
			processorCell(f), ratio(row.c.first, t.plain.first), milliseconds(f.p99))
	}
	fmt.Fprintf(&text,
		"\n%s Secrets were changed under load, and the new certificates were served %v after the start.\n",
		thousands(replaced), t.took.Round(10*time.Millisecond))
	_, err := io.WriteString(out, text.String())
	return err
}
