package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// The hosts for all works, counted from 1. Only k8singress has the last one.
const (
	plainHost = 1 + iota
	secureHost
	filteredHost
)

// proxies holds the contestants for all works. All processes run during the whole measurement, but only the measured
// one is not paused.
type proxies struct {
	ours, stock *contestant
	// nginx and haproxy are nil if they are not installed.
	nginx, haproxy *contestant
	// filtered holds the figures of each round for a host with filters and for a host without them.
	filtered [2][]figures
}

// compareWorks measures all works, prints the figures, and returns the bars.
func compareWorks(ctx context.Context, o options, s site, out io.Writer) ([]bar, error) {
	p := &proxies{}
	defer p.stop()
	if err := p.start(ctx, s.in("works")); err != nil {
		return nil, err
	}
	for round := range o.rounds {
		if err := p.measure(ctx, o, round); err != nil {
			return nil, err
		}
	}
	return p.bars(), errors.Join(p.finish(ctx), p.write(o, out))
}

func (p *proxies) start(ctx context.Context, s site) error {
	m, err := newMaker()
	if err != nil {
		return err
	}
	certificate, key, err := m.issue(hostName(secureHost))
	if err != nil {
		return err
	}
	both := filepath.Join(s.folder, "certificate.pem")
	err = errors.Join(os.MkdirAll(s.folder, 0o755), os.WriteFile(both, slices.Concat(certificate, key), 0o600))
	if err != nil {
		return err
	}
	if p.ours, err = startOurs(ctx, s, "ours", worksApplications(s, certificate, key)); err != nil {
		return err
	}
	if p.stock, err = startStock(ctx, s, certificate, key); err != nil {
		return err
	}
	if p.nginx, err = startNginx(ctx, s, both); err != nil {
		return err
	}
	p.haproxy, err = startHAProxy(ctx, s, both)
	return err
}

// startOther starts another proxy with a file that contains a certificate and its key. It returns nil if the proxy is
// not installed.
type startOther func(ctx context.Context, s site, certificate string) (*contestant, error)

// worksApplications returns the objects for k8singress: a host for HTTP, a host for HTTPS and a host with filters.
func worksApplications(s site, certificate, key []byte) applications {
	more := fmt.Sprintf(secureIngress, hostName(secureHost)) + secretOf(secureHost, certificate, key) +
		fmt.Sprintf(filteredIngress, hostName(filteredHost))
	return applications{hosts: 1, endpoints: 1, backend: s.backend, more: more}
}

// secureIngress is the manifest of a host with a certificate. Its value is the host.
const secureIngress = `---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: secure, namespace: bench}
spec:
  ingressClassName: nginx
  tls: [{hosts: [%[1]s], secretName: app-00002}]
  rules:
    - host: %[1]s
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app-00001, port: {number: 80}}}}]}
`

// filteredIngress is the manifest of a host with three filters: it adds a response header, rewrites the path, and has a
// canary that gets requests with a certain header. Its value is the host.
const filteredIngress = `---
apiVersion: v1
kind: ConfigMap
metadata: {name: controller, namespace: bench}
data: {global-allowed-response-headers: X-Frame-Options}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: headers, namespace: bench}
data: {X-Frame-Options: DENY}
---
apiVersion: v1
kind: Service
metadata: {name: canary, namespace: bench}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: filtered
  namespace: bench
  annotations:
    nginx.ingress.kubernetes.io/custom-headers: bench/headers
    nginx.ingress.kubernetes.io/rewrite-target: /changed
spec:
  ingressClassName: nginx
  rules:
    - host: %[1]s
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app-00001, port: {number: 80}}}}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: canary
  namespace: bench
  annotations:
    nginx.ingress.kubernetes.io/canary: "true"
    nginx.ingress.kubernetes.io/canary-by-header: X-Canary
spec:
  ingressClassName: nginx
  rules:
    - host: %[1]s
      http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: canary, port: {number: 80}}}}]}
`

// startStock starts Caddy without a controller, with the shortest possible routes for HTTP and HTTPS.
func startStock(ctx context.Context, s site, certificate, key []byte) (*contestant, error) {
	c, err := newContestant(s.folder, "stock", 1)
	if err != nil {
		return c, err
	}
	config, err := json.Marshal(stockWebConfig(c, s.backend, certificate, key))
	if err != nil {
		return c, err
	}
	return c, c.start(ctx, s.caddy(c.folder, "caddy.json"), config, c.servesFirst)
}

func stockWebConfig(c *contestant, backend string, certificate, key []byte) object {
	config := plainConfig(c.admin, c.http, secureHost, backend)
	servers := branch(config, "apps", "http", "servers")
	server := branch(servers, "bench")
	servers["secure"] = object{
		"listen": []string{c.https}, "routes": server["routes"], "automatic_https": server["automatic_https"],
		"protocols": []string{"h1", "h2"}, "tls_connection_policies": []object{{}},
	}
	branch(config, "apps")["tls"] = plainTLSApp(certificate, key)
	return config
}

// all returns the installed contestants in the order of the first round.
func (p *proxies) all() []*contestant { return installed(p.ours, p.nginx, p.haproxy, p.stock) }

func (p *proxies) stop() {
	for _, c := range p.all() {
		c.stop()
	}
}

// measure adds one round. The contestants for one work run one after the other, and each round starts with another
// contestant.
func (p *proxies) measure(ctx context.Context, o options, round int) error {
	for i, w := range works {
		if w.tool != "" && serverProgram(w.tool) == "" {
			continue
		}
		for _, c := range rotated(p.all(), round) {
			f, err := c.awake(func() (figures, error) { return w.send(ctx, o, c) })
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			c.answered[i] = append(c.answered[i], f)
		}
	}
	return inTurn(round, func(side int) error {
		f, err := p.ours.requests(ctx, o, [2]int{filteredHost, plainHost}[side])
		p.filtered[side] = append(p.filtered[side], f)
		return err
	})
}

// finish checks that metrics are enabled in each Caddy.
func (p *proxies) finish(ctx context.Context) error {
	return errors.Join(p.ours.finish(ctx), p.stock.finish(ctx))
}
