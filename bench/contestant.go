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
	"strings"
	"syscall"
	"time"
)

// contestant is a proxy process with one configuration.
type contestant struct {
	name    string
	hosts   int
	folder  string
	admin   string
	http    string
	https   string
	process *process
	// header is a header line that is added to every request. It may be empty.
	header string
	// annotations are used in turn by the Ingress that change rewrites.
	annotations turns
	// idle reports whether the process does nothing without requests, so that it need not be paused.
	idle bool

	// toReady is the time from the start of the process until it can serve all hosts.
	toReady time.Duration
	// memory is the resident memory when the process is ready, and peak is the resident memory after all measurements.
	// Both are in bytes.
	memory, peak int64
	// first and last hold the figures of each round, for the first and the last host.
	first, last []figures
	// answered holds the figures of each round, for each of the works.
	answered [][]figures
}

// newContestant creates a folder in another folder, and chooses free addresses.
func newContestant(below, name string, hosts int) (*contestant, error) {
	folder := filepath.Join(below, name)
	c := &contestant{name: name, hosts: hosts, folder: folder, answered: make([][]figures, len(works))}
	addresses, err := freeAddresses(3)
	if err != nil {
		return c, err
	}
	c.admin, c.http, c.https = addresses[0], addresses[1], addresses[2]
	return c, os.MkdirAll(folder, 0o755)
}

// installed returns the contestants that are not nil.
func installed(all ...*contestant) []*contestant {
	return slices.DeleteFunc(all, func(c *contestant) bool { return c == nil })
}

// rotated returns the order for a round. Each round starts with another contestant.
func rotated(all []*contestant, round int) []*contestant {
	first := round % len(all)
	return slices.Concat(all[first:], all[:first])
}

// startOurs starts Caddy as a controller for a folder of manifests, with more options.
func startOurs(ctx context.Context, s site, name string, a applications, options ...string) (*contestant, error) {
	c, err := newContestant(s.folder, name, a.hosts)
	if err != nil {
		return c, err
	}
	return c, c.startWith(ctx, s, a, c.caddyfile(options...))
}

// startWith starts Caddy with a folder of manifests and a Caddyfile.
func (c *contestant) startWith(ctx context.Context, s site, a applications, caddyfile []byte) error {
	c.annotations = a.annotations
	if err := writeManifests(c.manifests(), a); err != nil {
		return err
	}
	caddyfile, err := s.known(ctx, c.folder, caddyfile)
	if err != nil {
		return err
	}
	if err := c.start(ctx, s.caddy(c.folder, "Caddyfile"), caddyfile, c.ready); err != nil {
		return err
	}
	return c.takesAll(ctx)
}

// takesAll returns an error if the controller has rejected a part of an Ingress, because the measurement would be
// wrong.
func (c *contestant) takesAll(ctx context.Context) error {
	_, err := c.awake(func() (figures, error) {
		text, err := c.ask(ctx, "/k8singress/objects")
		if err != nil {
			return figures{}, err
		}
		return figures{}, refusedIn(text)
	})
	return err
}

// refusedIn returns an error for the first problem with an Ingress in the controller's list of objects. It ignores
// Services without endpoints, because the canary of filteredIngress has none.
func refusedIn(objects string) error {
	var all []struct {
		Object   struct{ Kind, Name string }
		Problems []struct{ Reason, Message string }
	}
	if err := json.Unmarshal([]byte(objects), &all); err != nil {
		return err
	}
	for _, each := range all {
		for _, problem := range each.Problems {
			if each.Object.Kind == "Ingress" && problem.Reason != "NoEndpoints" {
				return fmt.Errorf("the Ingress %s: %s", each.Object.Name, problem.Message)
			}
		}
	}
	return nil
}

// caddyfile returns the Caddyfile of a controller for the folder of manifests, with more options.
func (c *contestant) caddyfile(options ...string) []byte {
	return fmt.Appendf(nil, `{
	admin %s
	k8singress {
		reach_allow 127.0.0.0/8
		manifests %s
		configmap bench/controller
		http %s
		https %s
		access_log off
		%s
	}
}
`, c.admin, c.manifests(), c.http, c.https, strings.Join(options, "\n\t\t"))
}

// startPlain starts Caddy without k8singress. Its configuration has one route for each host.
func startPlain(ctx context.Context, s site, name string, hosts int) (*contestant, error) {
	c, err := newContestant(s.folder, name, hosts)
	if err != nil {
		return c, err
	}
	config, err := json.Marshal(plainConfig(c.admin, c.http, hosts, s.backend))
	if err != nil {
		return c, err
	}
	return c, c.start(ctx, s.caddy(c.folder, "caddy.json"), config,
		func(ctx context.Context) bool { return c.serves(ctx, hosts) })
}

type object = map[string]any

// plainConfig returns a Caddy configuration with the shortest possible route for each host.
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

// site holds what all contestants have in common: the binary, the folder and the address of the backend.
type site struct {
	binary, folder, backend string
}

// in returns a site with a folder within the folder of s.
func (s site) in(folder string) site {
	s.folder = filepath.Join(s.folder, folder)
	return s
}

// setup is a program and the path of its configuration file.
type setup struct {
	program
	config string
}

func (s site) caddy(folder, config string) setup {
	path := filepath.Join(folder, config)
	return setup{program{s.binary, []string{"run", "--config", path}, syscall.SIGKILL}, path}
}

// start runs the process, waits until it is ready, checks that it serves the hosts, and pauses it.
func (c *contestant) start(ctx context.Context, s setup, config []byte, ready func(context.Context) bool) error {
	begin := time.Now()
	if err := c.launch(ctx, s, config, ready); err != nil {
		return err
	}
	c.toReady = time.Since(begin)
	if !c.serves(ctx, 1) || !c.serves(ctx, c.hosts) {
		return fmt.Errorf("%s reports that it is ready but does not serve its %d hosts: %s", c.name, c.hosts,
			c.process.lastWords())
	}
	var err error
	if c.memory, err = c.process.memory(); err != nil {
		return err
	}
	return c.pause()
}

// launch runs the process and waits until it is ready.
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

// ready reports whether the controller has applied all objects.
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

// servesFirst reports whether requests to the first host succeed.
func (c *contestant) servesFirst(ctx context.Context) bool { return c.serves(ctx, 1) }

// serves reports whether a request to a host succeeds. Hosts are counted from 1.
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
	for _, m := range []struct {
		host   int
		rounds *[]figures
	}{{1, &c.first}, {c.hosts, &c.last}} {
		f, err := c.requests(ctx, o, m.host)
		if err != nil {
			return err
		}
		*m.rounds = append(*m.rounds, f)
		if c.hosts == 1 {
			c.last = c.first
			break
		}
	}
	return nil
}

// load returns a load of short GETs for a host. Hosts are counted from 1.
func (c *contestant) load(o options, host int) load {
	return load{
		proxy: c.process, address: c.http, hosts: []string{hostName(host)}, body: answerBody,
		header: c.header, connections: o.connections, warmUp: o.duration / 3, duration: o.duration,
	}
}

// requests resumes the contestant and measures as many requests as possible to one host. Hosts are counted from 1.
func (c *contestant) requests(ctx context.Context, o options, host int) (figures, error) {
	return c.awake(func() (figures, error) { return c.load(o, host).run(ctx) })
}

// awake resumes the contestant, calls measure, and pauses the contestant again.
func (c *contestant) awake(measure func() (figures, error)) (figures, error) {
	if err := c.resume(); err != nil {
		return figures{}, err
	}
	f, err := measure()
	if err != nil {
		return f, fmt.Errorf("%s: %w", c.name, err)
	}
	return f, c.pause()
}

// change changes one Ingress, and returns the time until a request uses the change.
func (c *contestant) change(ctx context.Context, number int) (time.Duration, error) {
	begin := time.Now()
	text := fmt.Sprintf(changing, number, c.annotations.of(number))
	if err := writeWhole(c.manifests(), changingFile, text); err != nil {
		return 0, err
	}
	url := fmt.Sprintf("http://%s/change-%d", c.http, number)
	served := func(ctx context.Context) bool {
		response, err := get(ctx, url, changingHost)
		return err == nil && response.Body.Close() == nil
	}
	if err := c.process.await(ctx, served); err != nil {
		return 0, fmt.Errorf("waiting for change %d of %s: %w", number, c.name, err)
	}
	return time.Since(begin), nil
}

// liveHeap returns the size of the heap after a garbage collection, in bytes.
func (c *contestant) liveHeap(ctx context.Context) (int64, error) {
	if err := c.resume(); err != nil {
		return 0, err
	}
	said, err := c.runtimeSays(ctx, "?gc=1&debug=1")
	return said.heap, errors.Join(err, c.pause())
}

// ask returns the response of the admin API.
func (c *contestant) ask(ctx context.Context, path string) (string, error) {
	return textOf(ctx, "http://"+c.admin+path)
}

// textOf returns the body of a response.
func textOf(ctx context.Context, url string) (string, error) {
	response, err := get(ctx, url, "")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// finish records the memory, and checks that metrics are enabled in Caddy. Metrics cost time, and users enable them.
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
	text, err := c.ask(ctx, "/metrics")
	if err != nil {
		return err
	}
	if !strings.Contains(text, "\ncaddy_http_requests_total{") &&
		!strings.Contains(text, "\nk8singress_http_requests_total{") {
		return errors.New("HTTP metrics are not enabled in every contestant, so the figures cannot be compared")
	}
	return nil
}
