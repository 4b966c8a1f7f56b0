package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/websocket"

	"github.com/k8singress/k8singress/test/harness"
)

// pace is the time between two requests of one client.
const pace = 5 * time.Millisecond

// keepers is the number of clients that keep their connection, for HTTP/1.1, and also for HTTP/2 if there is TLS.
const keepers = 3

// load sends requests to one host continuously, over open connections and over new ones.
type load struct {
	caddy *harness.Caddy
	host  string
	pairs []keyPair

	// allowed is a status code besides 200 that is not a failure. 0 means that there is no such code.
	allowed atomic.Int64
	// unavailable is the number of responses with the allowed code.
	requests, unavailable, connections atomic.Int64

	clients sync.WaitGroup
	// stop makes the clients end after their requests in progress.
	stop context.CancelFunc

	mu       sync.Mutex
	failures []error
}

// startLoad starts clients that stop when the test ends. With pairs, requests are also sent over HTTPS.
func (c *cluster) startLoad(caddy *harness.Caddy, host string, pairs ...keyPair) *load {
	return c.startLoads(1, caddy, host, pairs...)
}

// startLoads starts the same number of clients several times.
func (c *cluster) startLoads(times int, caddy *harness.Caddy, host string, pairs ...keyPair) *load {
	l := &load{caddy: caddy, host: host, pairs: pairs}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(c.Context())
	for range times * keepers {
		l.clients.Go(func() { l.keep(ctx, caddy.HTTP, "http://"+host+"/load") })
		if len(pairs) > 0 {
			l.clients.Go(func() { l.keep(ctx, caddy.HTTPS, "https://"+host+"/load") })
		}
	}
	for range times {
		l.clients.Go(func() {
			l.repeat(ctx, func(ctx context.Context) (reply, error) {
				return once(ctx, caddy.HTTP, "http://"+host+"/load")
			})
		})
	}
	c.Cleanup(func() {
		l.stop()
		l.clients.Wait()
	})
	return l
}

// finish ends the load after the requests in progress, and returns how many requests were sent. It fails the test if a
// request failed.
func (l *load) finish(c *cluster) int64 {
	c.Helper()
	l.check(c)
	l.stop()
	l.clients.Wait()
	l.checkFailures(c)
	return l.requests.Load()
}

// keep uses one connection for all requests, and counts how often it connects.
func (l *load) keep(ctx context.Context, address, url string) {
	transport := newTransport(address, l.pairs...)
	transport.DialContext = counted(transport.DialContext, &l.connections)
	defer transport.CloseIdleConnections()
	l.repeat(ctx, func(ctx context.Context) (reply, error) { return ask(ctx, transport, url) })
}

// repeat sends requests until ctx ends. It does not interrupt a request in progress, so that each one is counted.
func (l *load) repeat(ctx context.Context, request func(context.Context) (reply, error)) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for ctx.Err() == nil {
		l.record(request(context.WithoutCancel(ctx)))
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (l *load) record(r reply, err error) {
	l.requests.Add(1)
	switch {
	case err == nil && r.code == http.StatusOK:
		return
	case err == nil && int64(r.code) == l.allowed.Load():
		l.unavailable.Add(1)
		return
	case err == nil:
		err = fmt.Errorf("status %d", r.code)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures = append(l.failures, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
}

// check fails the test if a request failed since the last check. It waits until requests have been sent after the call.
func (l *load) check(c *cluster) {
	c.Helper()
	begin := l.requests.Load()
	c.await("requests go on", func() error {
		if l.requests.Load() < begin+10*keepers {
			return errors.New("not enough yet")
		}
		return nil
	})
	l.checkFailures(c)
}

func (l *load) checkFailures(c *cluster) {
	c.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failures) > 0 {
		c.Errorf("%d requests failed, the first and the last: %v; %v", len(l.failures), l.failures[0],
			l.failures[len(l.failures)-1])
	}
	l.failures = nil
}

// checkKept fails the test if a client had to connect again.
func (l *load) checkKept(c *cluster) {
	c.Helper()
	want := int64(keepers)
	if len(l.pairs) > 0 {
		want *= 2
	}
	if made := l.connections.Load(); made != want {
		c.Errorf("%d keep-alive clients made %d connections", want, made)
	}
}

// stream is an open WebSocket that exchanges messages until the test ends.
type stream struct {
	messages atomic.Int64
	broken   atomic.Pointer[error]
}

func (c *cluster) openStream(caddy *harness.Caddy, host string) *stream {
	c.Helper()
	config, err := websocket.NewConfig("ws://"+host+"/ws", "http://"+host)
	c.must(err)
	conn, err := newTransport(caddy.HTTP).DialContext(c.Context(), "tcp", host)
	c.must(err)
	socket, err := websocket.NewClient(config, conn)
	c.must(err)
	s := &stream{}
	ctx, cancel := context.WithCancel(c.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := s.run(ctx, socket); ctx.Err() == nil {
			s.broken.Store(&err)
		}
	}()
	c.Cleanup(func() {
		cancel()
		_ = socket.Close()
		<-ended
	})
	return s
}

func (s *stream) run(ctx context.Context, socket *websocket.Conn) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		sent := fmt.Sprintf("message %d", s.messages.Load())
		if err := websocket.Message.Send(socket, sent); err != nil {
			return err
		}
		var got string
		if err := websocket.Message.Receive(socket, &got); err != nil {
			return err
		}
		if got != sent {
			return fmt.Errorf("sent %q, got %q", sent, got)
		}
		s.messages.Add(1)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// check fails the test if messages no longer come back.
func (s *stream) check(c *cluster) {
	c.Helper()
	begin := s.messages.Load()
	c.await("the WebSocket lives", func() error {
		if err := s.broken.Load(); err != nil {
			c.Fatalf("the WebSocket broke after %d messages: %v", s.messages.Load(), *err)
		}
		if s.messages.Load() < begin+3 {
			return errors.New("no messages")
		}
		return nil
	})
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

func counted(dial dialFunc, count *atomic.Int64) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		count.Add(1)
		return dial(ctx, network, address)
	}
}
