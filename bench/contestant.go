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
	"syscall"
	"time"
)

// contestant is one proxy with one configuration.
type contestant struct {
	name    string
	hosts   int
	folder  string
	admin   string
	http    string
	process *process
	// idle says that it does nothing without requests, and need not be paused.
	idle bool

	// toReady is the time from the start of the process until it is ready to serve all hosts.
	toReady time.Duration
	// memory is the resident set when it is ready, and peak the same after all measurements.
	memory, peak int64
	// first and last hold one figure for each round, for the first and the last host.
	first, last []figures
}

// newContestant prepares a folder below another one, and addresses.
func newContestant(below, name string, hosts int) (*contestant, error) {
	folder := filepath.Join(below, name)
	c := &contestant{name: name, hosts: hosts, folder: folder}
	var errAdmin, errHTTP error
	c.admin, errAdmin = freeAddress()
	c.http, errHTTP = freeAddress()
	return c, errors.Join(errAdmin, errHTTP, os.MkdirAll(folder, 0o755))
}

// startOurs starts Caddy with a folder of manifests.
func startOurs(ctx context.Context, s site, name string, a applications) (*contestant, error) {
	c, err := newContestant(s.folder, name, a.hosts)
	if err != nil {
		return c, err
	}
	https, err := freeAddress()
	if err != nil {
		return c, err
	}
	if err := writeManifests(c.manifests(), a); err != nil {
		return c, err
	}
	config := fmt.Sprintf(`{
	admin %s
	k8singress {
		manifests %s
		http %s
		https %s
	}
}
`, c.admin, c.manifests(), c.http, https)
	return c, c.start(ctx, s.caddy(c.folder, "Caddyfile"), []byte(config), c.ready)
}

// startPlain starts Caddy with one route for each host, as its own configuration has it.
func startPlain(ctx context.Context, s site, name string, hosts int) (*contestant, error) {
	c, err := newContestant(s.folder, name, hosts)
	if err != nil {
		return c, err
	}
	config, err := json.Marshal(plainConfig(c.admin, c.http, hosts, s.backend))
	if err != nil {
		return c, err
	}
	return c, c.start(ctx, s.caddy(c.folder, "caddy.json"), config, func(ctx context.Context) bool { return c.serves(ctx, hosts) })
}

type object = map[string]any

// plainConfig has the shortest route that Caddy needs for a host.
func plainConfig(admin, http string, hosts int, backend string) object {
	routes := make([]object, 0, hosts)
	for i := 1; i <= hosts; i++ {
		routes = append(routes, object{
			"match":    []object{{"host": []string{hostName(i)}}},
			"handle":   []object{{"handler": "reverse_proxy", "upstreams": []object{{"dial": backend}}}},
			"terminal": true,
		})
	}
	server := object{"listen": []string{http}, "routes": routes, "automatic_https": object{"disable": true}}
	return object{
		"admin": object{"listen": admin, "config": object{"persist": false}},
		"apps":  object{"http": object{"metrics": object{}, "servers": object{"bench": server}}},
	}
}

// site is what all contestants share.
type site struct {
	binary, folder, backend string
}

// setup is a program and the file that it reads its configuration from.
type setup struct {
	program
	config string
}

func (s site) caddy(folder, config string) setup {
	path := filepath.Join(folder, config)
	return setup{program{s.binary, []string{"run", "--config", path}, syscall.SIGKILL}, path}
}

// start runs the process, waits until it is ready, checks that it serves, and pauses it.
func (c *contestant) start(ctx context.Context, s setup, config []byte, ready func(context.Context) bool) error {
	begin := time.Now()
	if err := c.launch(ctx, s, config, ready); err != nil {
		return err
	}
	c.toReady = time.Since(begin)
	if !c.serves(ctx, 1) || !c.serves(ctx, c.hosts) {
		return fmt.Errorf("%s says that it is ready and does not serve its %d hosts: %s", c.name, c.hosts, c.process.lastWords())
	}
	var err error
	if c.memory, err = c.process.memory(); err != nil {
		return err
	}
	return c.pause()
}

// launch runs the process, and waits until it is ready.
func (c *contestant) launch(ctx context.Context, s setup, config []byte, ready func(context.Context) bool) error {
	if err := os.WriteFile(s.config, config, 0o644); err != nil {
		return err
	}
	var err error
	if c.process, err = startProcess(c.folder, s.program); err != nil {
		return err
	}
	if err := c.process.await(ctx, ready); err != nil {
		return fmt.Errorf("waiting for %s: %w", c.name, err)
	}
	return nil
}

func (c *contestant) pause() error {
	if c.idle {
		return nil
	}
	return c.process.pause()
}

func (c *contestant) resume() error {
	if c.idle {
		return nil
	}
	return c.process.resume()
}

func (c *contestant) stop() {
	if c.process != nil {
		c.process.stop()
	}
}

func (c *contestant) manifests() string { return filepath.Join(c.folder, "manifests") }

// ready asks the controller whether it has applied everything.
func (c *contestant) ready(ctx context.Context) bool {
	response, err := get(ctx, "http://"+c.admin+"/k8singress/status", "")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var status struct {
		Ready bool `json:"ready"`
	}
	return json.NewDecoder(response.Body).Decode(&status) == nil && status.Ready
}

// serves asks for one host, counted from 1.
func (c *contestant) serves(ctx context.Context, host int) bool {
	response, err := get(ctx, "http://"+c.http+"/", hostName(host))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && string(body) == answerBody
}

// measure adds one round.
func (c *contestant) measure(ctx context.Context, o options) error {
	if err := c.resume(); err != nil {
		return err
	}
	for _, m := range []struct {
		host   int
		rounds *[]figures
	}{{1, &c.first}, {c.hosts, &c.last}} {
		l := load{
			address: c.http, hosts: []string{hostName(m.host)}, body: answerBody,
			connections: o.connections, warmUp: o.duration / 3, duration: o.duration,
		}
		f, err := l.run(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		*m.rounds = append(*m.rounds, f)
		if c.hosts == 1 {
			c.last = c.first
			break
		}
	}
	return c.pause()
}

// finish notes the memory, and checks that a Caddy has metrics on: they cost time, and users have them on.
func (c *contestant) finish(ctx context.Context) error {
	if err := c.resume(); err != nil {
		return err
	}
	var err error
	if c.peak, err = c.process.memory(); err != nil {
		return err
	}
	if c.idle {
		return nil
	}
	response, err := get(ctx, "http://"+c.admin+"/metrics", "")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "\ncaddy_http_requests_total{") {
		return errors.New("HTTP metrics are not on in each contestant, so that the figures cannot be compared")
	}
	return nil
}
