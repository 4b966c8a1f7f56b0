package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	// barrageClients is the number of clients that keep their connections. barrageStrangers is the number of clients
	// that open a connection for each request.
	barrageClients, barrageStrangers = 12, 4
	// barragePace is the minimum time between two requests of one client. It keeps a fast machine from sending millions
	// of requests.
	barragePace = 2 * time.Millisecond
	// slowPath gets its response after ten seconds. slowPace is the time between two requests for it.
	slowPath = "/delay/10"
	slowPace = 250 * time.Millisecond
	// barrageLimit is the time limit for all requests on a busy machine.
	barrageLimit = 3 * time.Minute
)

// barrage sends many requests to one host, including slow ones. No request may fail.
type barrage struct {
	load
	// ctx ends when no more requests should be sent.
	ctx     context.Context
	address string
	// begun and ended count the slow requests.
	begun, ended atomic.Int64
}

// barrageSize returns the minimum number of requests during a disturbance.
func barrageSize() int64 {
	if harness.RaceEnabled {
		return 5_000
	}
	return 50_000
}

// startBarrage sends requests to an address until finish is called.
func (c *cluster) startBarrage(address, host string) *barrage {
	b := &barrage{address: address}
	b.host = host
	b.ctx, b.stop = context.WithCancel(c.Context())
	for range barrageClients {
		transport := newTransport(address)
		c.Cleanup(transport.CloseIdleConnections)
		b.goes(barragePace, func() { b.one(transport, "/load") })
	}
	for range barrageStrangers {
		b.goes(barragePace, func() {
			transport := newTransport(address)
			transport.DisableKeepAlives = true
			b.one(transport, "/load")
		})
	}
	slow := newTransport(address)
	c.Cleanup(slow.CloseIdleConnections)
	b.goes(slowPace, func() {
		b.begun.Add(1)
		b.clients.Go(func() {
			b.one(slow, slowPath)
			b.ended.Add(1)
		})
	})
	c.Cleanup(func() {
		b.stop()
		b.clients.Wait()
	})
	return b
}

// goes calls request repeatedly, at most once per pace. It does not interrupt a request in progress.
func (b *barrage) goes(pace time.Duration, request func()) {
	b.clients.Go(func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for b.ctx.Err() == nil {
			request()
			<-tick.C
		}
	})
}

func (b *barrage) one(transport *http.Transport, path string) {
	r, err := ask(context.WithoutCancel(b.ctx), transport, "http://"+b.host+path)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	b.record(r, err)
}

// awaitSlow waits until slow requests that have started after the call are in progress.
func (b *barrage) awaitSlow(c *cluster) {
	c.Helper()
	begin := b.begun.Load()
	c.await("slow requests under way", func() error {
		if b.begun.Load() < begin+4 {
			return errors.New("not enough yet")
		}
		return nil
	})
}

// slowAt sends a slow request to another address, and returns when it is in progress.
func (b *barrage) slowAt(c *cluster, address string) {
	c.Helper()
	transport := newTransport(address)
	transport.DisableKeepAlives = true
	sent := make(chan struct{})
	ctx := httptrace.WithClientTrace(context.WithoutCancel(b.ctx), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
	})
	b.clients.Go(func() {
		r, err := ask(ctx, transport, "http://"+b.host+slowPath)
		b.record(r, err)
	})
	select {
	case <-sent:
	case <-time.After(deadline):
		c.Fatalf("no slow request to %s", address)
	}
}

// finish waits until enough requests were sent and all of them have ended. It fails the test if a request failed.
func (b *barrage) finish(c *cluster) {
	c.Helper()
	size := barrageSize()
	c.awaitFor(barrageLimit, fmt.Sprintf("%d requests", size), func() error {
		if n := b.requests.Load(); n < size {
			return fmt.Errorf("%d so far", n)
		}
		return nil
	})
	b.stop()
	b.clients.Wait()
	c.Logf("%d of %d requests failed; %d of them took ten seconds", len(b.failures), b.requests.Load(), b.ended.Load())
	if n := len(b.failures); n > 0 {
		c.Errorf("%d requests failed, the first and the last: %v; %v", n, b.failures[0], b.failures[n-1])
	}
}
