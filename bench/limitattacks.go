package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

const (
	// fewDescriptors is the limit on open files for the process in the attack on descriptors.
	fewDescriptors = 800
	// muteClients connect to each port and send nothing.
	muteClients = 1000
	// halfConnections is the number of connections, and halfStreams the number of requests on each. Every request sends
	// halfBody bytes, which is half of its body.
	halfConnections, halfStreams, halfBody = 10, 100, 32 << 10
	// promptly is the time within which honest requests must get a response during the attack on descriptors.
	promptly = 2 * time.Second
	// attackRamp is the time in which the silent clients connect.
	attackRamp = 5 * time.Second
)

// attackDescriptors opens more connections and request bodies than the process has descriptors for, and sends honest
// requests every second.
func attackDescriptors(ctx context.Context, l limits, folder string, out io.Writer) ([]bar, error) {
	t, err := startTarget(ctx, l, folder, "descriptors", fmt.Sprintf("ulimit -n %d", fewDescriptors))
	defer t.stop()
	if err != nil {
		return nil, err
	}
	half := fmt.Sprintf("requests of %d HTTP/2 connections, %d each, with half of a body", halfConnections, halfStreams)
	all := []*hostile{
		t.openTwo(half, halfConnections, openRequests{streams: halfStreams, length: 2 * halfBody, sent: halfBody}),
		silent(fmt.Sprintf("%d silent connections to the HTTP port", muteClients), t.http, muteClients, attackRamp),
		silent(fmt.Sprintf("%d silent connections to the HTTPS port", muteClients), t.https, muteClients, attackRamp),
		silent(fmt.Sprintf("%d silent connections to the health port", muteClients), t.health, muteClients, attackRamp),
	}
	end := attackWith(ctx, all)
	wait(ctx, time.Now().Add(attackRamp))
	honest := t.honest()
	err = errors.Join(askEachSecond(ctx, l.duration, honest), ctx.Err())
	open := t.descriptors()
	end()
	if err != nil {
		return nil, err
	}
	attack := fmt.Sprintf("ulimit -n %d", fewDescriptors)
	bars := []bar{t.livesBar(attack)}
	for _, each := range honest {
		bars = append(bars, each.bar(attack))
	}
	head := fmt.Sprintf(
		"## Descriptors\n\nThe process has `%s`, and %d descriptors open at the end. Honest clients send one request "+
			"per second for %v, each time on a new connection.", attack, open, l.duration)
	return bars, writeAttack(out, head, all)
}

// asker sends one kind of request, each time on a new connection.
type asker struct {
	name  string
	ask   func(context.Context) error
	mutex sync.Mutex
	tally tally
}

// honest returns one asker for each kind of request, and one for the probe of the health port.
func (t *target) honest() []*asker {
	over := func(secure bool) func(context.Context) error {
		return func(ctx context.Context) error {
			connection, err := load{address: t.addressOf(secure), secure: secure, body: answerBody}.open(ctx,
				hostOf(secure))
			if err != nil {
				return err
			}
			return connection.Close()
		}
	}
	two := func(ctx context.Context) error {
		client := t.twoClient()
		defer client.CloseIdleConnections()
		return askBy(ctx, client, "/")
	}
	return []*asker{
		{name: "HTTP/1.1", ask: over(false)}, {name: "HTTPS with HTTP/1.1", ask: over(true)},
		{name: "HTTP/2", ask: two},
		{name: "probe of the health port", ask: t.probe},
	}
}

// probe sends a request to the health port on a new connection.
func (t *target) probe(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+t.health+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		err = errors.New("the response to the probe is " + response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

// askEachSecond sends a request with each asker once a second. A late response does not delay the next request.
func askEachSecond(ctx context.Context, duration time.Duration, all []*asker) error {
	var group sync.WaitGroup
	begin := time.Now()
	for second := time.Duration(0); second < duration && ctx.Err() == nil; second += time.Second {
		wait(ctx, begin.Add(second))
		for _, each := range all {
			group.Go(func() { each.once(ctx) })
		}
	}
	group.Wait()
	return ctx.Err()
}

// once sends one request. A response after promptly is a failure.
func (a *asker) once(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, promptly)
	defer cancel()
	begin := time.Now()
	err := a.ask(ctx)
	took := time.Since(begin)
	if err == nil && took > promptly {
		err = fmt.Errorf("the response takes %v", took)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err != nil {
		a.tally.fail(err)
		return
	}
	a.tally.latencies = append(a.tally.latencies, took)
}

func (a *asker) bar(attack string) bar {
	asked := len(a.tally.latencies) + a.tally.failed
	b := bar{Work: a.name + " once a second, " + attack, Bar: fmt.Sprintf("each answered within %v", promptly)}
	b.Measured = fmt.Sprintf("%d of %d, the slowest of them in %s", len(a.tally.latencies), asked,
		milliseconds(longest(a.tally.latencies)))
	if a.tally.first != nil {
		b.Measured += fmt.Sprintf(" (first failure: %.120s)", a.tally.first.Error())
	}
	return held(b, asked > 0 && a.tally.failed == 0)
}

const (
	// memoryLimit is GOMEMLIMIT in MiB for the process in the attack on memory. Its resident memory must stay below
	// memoryFactor times this limit.
	memoryLimit  = 256
	memoryFactor = 1.3
	// slowdown is the maximum ratio of the p99 of honest requests during the attack to their p99 before it.
	slowdown = 2.0
	// The clients that use memory: connections of HTTP/2 with largeStreams requests each, slow readers, uploads, and
	// floods.
	largeConnections, largeStreams = 200, 100
	slowReaders, heldUploads       = 500, 200
	floods                         = 2
	// honestRate is the number of honest requests per second. honestClients is the number of clients that send them.
	honestRate, honestClients = 50, 4
	// memoryTick is the interval at which the resident memory is measured.
	memoryTick = 250 * time.Millisecond
)

// attackMemory starts clients that use memory, and compares the p99 of honest requests with the p99 before the attack.
// The clients run on the same machine. To tell their share of the delay, attackMemory also measures the p99 of a second
// process that is not attacked.
func attackMemory(ctx context.Context, l limits, folder string, out io.Writer) ([]bar, error) {
	attack := fmt.Sprintf("GOMEMLIMIT=%dMiB", memoryLimit)
	t, err := startTarget(ctx, l, folder, "memory", "export "+attack)
	defer t.stop()
	if err != nil {
		return nil, err
	}
	other, err := startTarget(ctx, l, folder, "not-attacked", "export "+attack)
	defer other.stop()
	if err != nil {
		return nil, err
	}
	quiet := t.honestLoad(l.duration).count(ctx)
	all := t.memoryAttack(l)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	peak := t.watchMemory(watched)
	end := attackWith(ctx, all)
	beside, elsewhere := honestOnBoth(ctx, l, t, other)
	end()
	stop()
	highest := <-peak
	if err := errors.Join(ctx.Err(), quiet.first, elsewhere.first); err != nil {
		return nil, err
	}
	bars := []bar{t.livesBar(attack), memoryBar(attack, highest), slowdownBar(attack, quiet, beside)}
	head := fmt.Sprintf(
		"\n## Memory\n\nThe process has `%s`. %d honest requests a second come for %v, on %d connections that "+
			"are kept; before the attack their p99 is %s. During the attack, the p99 of the same requests to another "+
			"process, which is not attacked, is %s (%.1f times).", attack, honestRate, l.duration, honestClients,
		milliseconds(quiet.p99), milliseconds(elsewhere.p99), float64(elsewhere.p99)/float64(quiet.p99))
	return bars, writeAttack(out, head, all)
}

// honestOnBoth sends the same honest requests to both processes at the same time.
func honestOnBoth(ctx context.Context, l limits, attacked, other *target) (beside, elsewhere *tally) {
	var group sync.WaitGroup
	group.Go(func() { beside = attacked.honestLoad(l.duration).count(ctx) })
	group.Go(func() { elsewhere = other.honestLoad(l.duration).count(ctx) })
	group.Wait()
	return beside, elsewhere
}

// memoryAttack returns all kinds of clients that use memory. They connect during the first third of the attack.
func (t *target) memoryAttack(l limits) []*hostile {
	ramp := l.duration / 3
	connections := largeConnections / l.share
	name := fmt.Sprintf("%s HTTP/2 requests with heads of %d KB and open bodies",
		thousands(float64(connections*largeStreams)), largeFields*largeField>>10)
	heads := t.openTwo(name, connections,
		openRequests{streams: largeStreams, fields: largeFields, fieldSize: largeField})
	heads.ramp = ramp
	return []*hostile{heads, t.readers(slowReaders/l.share, ramp), t.uploads(heldUploads/l.share, ramp),
		t.continuations(floods)}
}

// honestLoad returns a load of short GETs on keep-alive connections.
func (t *target) honestLoad(duration time.Duration) load {
	return load{
		address: t.http, hosts: []string{hostName(plainHost)}, body: answerBody, tolerant: true,
		connections: honestClients, perSecond: honestRate, warmUp: time.Second, duration: duration,
	}
}

// watchMemory returns a channel that receives the largest resident memory in bytes when ctx ends.
func (t *target) watchMemory(ctx context.Context) <-chan int64 {
	peak := make(chan int64, 1)
	go func() {
		var largest int64
		for ctx.Err() == nil && t.lives() {
			if now, err := t.process.memory(); err == nil { // An error means that the process has ended.
				largest = max(largest, now)
			}
			wait(ctx, time.Now().Add(memoryTick))
		}
		peak <- largest
	}()
	return peak
}

func memoryBar(attack string, peak int64) bar {
	b := bar{Work: "resident memory, " + attack, Bar: fmt.Sprintf("under %.1f of the limit", memoryFactor)}
	share := float64(peak) / (memoryLimit << 20)
	b.Measured = fmt.Sprintf("%s, %.2f of the limit", megabytes(peak), share)
	return held(b, peak > 0 && share < memoryFactor)
}

// slowdownBar returns a bar that is met only if no honest request fails.
func slowdownBar(attack string, quiet, beside *tally) bar {
	b := bar{Work: "p99 of honest requests, " + attack,
		Bar: fmt.Sprintf("under %.1f times the quiet p99, no failure", slowdown)}
	times := float64(beside.p99) / float64(quiet.p99)
	b.Measured = fmt.Sprintf("%s, %.1f times; %d of %d failed", milliseconds(beside.p99), times, beside.failed,
		len(beside.latencies)+beside.failed)
	if beside.first != nil {
		b.Measured += fmt.Sprintf(" (first: %.120s)", beside.first.Error())
	}
	return held(b, len(beside.latencies) > 0 && times < slowdown && beside.failed == 0)
}
