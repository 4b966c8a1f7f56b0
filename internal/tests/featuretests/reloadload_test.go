package featuretests

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// load holds clients that send requests until they are stopped.
type load struct {
	*ingress
	running sync.WaitGroup
	ctx     context.Context
	stop    func()

	mu     sync.Mutex
	counts map[string]*atomic.Int64
	failed map[string][]error
}

func (in *ingress) newLoad() *load {
	l := &load{ingress: in, counts: map[string]*atomic.Int64{}, failed: map[string][]error{}}
	l.ctx, l.stop = context.WithCancel(in.Context())
	return l
}

// repeats starts a client of a kind that sends requests repeatedly.
func (l *load) repeats(kind string, ask func() error) {
	if l.counts[kind] == nil {
		l.counts[kind] = new(atomic.Int64)
	}
	count := l.counts[kind]
	l.running.Go(func() {
		for l.ctx.Err() == nil {
			if err := ask(); err != nil {
				l.mu.Lock()
				l.failed[kind] = append(l.failed[kind], err)
				l.mu.Unlock()
			}
			count.Add(1)
		}
	})
}

// awaitEach waits until a client of each kind has sent a request, successful or not.
func (l *load) awaitEach() {
	l.Helper()
	before := map[string]int64{}
	for kind, count := range l.counts {
		before[kind] = count.Load()
	}
	fixture.Holds(l, "one more request of each kind", func() bool {
		for kind, count := range l.counts {
			if count.Load() == before[kind] {
				return false
			}
		}
		return true
	})
}

// ends stops all clients, and fails the test if a request failed, or if a kind of clients sent none.
func (l *load) ends() {
	l.Helper()
	l.stop()
	l.running.Wait()
	for kind, count := range l.counts {
		l.Logf("%s: %d of %d failed", kind, len(l.failed[kind]), count.Load())
		if count.Load() == 0 {
			l.Errorf("%s: nobody asked", kind)
		}
		for i, err := range l.failed[kind] {
			if i < 3 {
				l.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// line is a connection of HTTP/1.1 whose client, unlike Go's, retries no request.
type line struct {
	net.Conn
	*bufio.Reader
}

func (in *ingress) line(secure bool) (*line, error) {
	dialer := &net.Dialer{Timeout: deadline}
	conn, err := dialer.Dial("tcp", in.http)
	if secure {
		conn, err = tls.DialWithDialer(dialer, "tcp", in.https,
			&tls.Config{ServerName: "a.example", InsecureSkipVerify: true})
	}
	if err != nil {
		return nil, err
	}
	return &line{conn, bufio.NewReader(conn)}, nil
}

// ask sends a request, and returns an error unless the connection can be used again.
func (l *line) ask() error {
	if err := l.SetDeadline(time.Now().Add(deadline)); err != nil {
		return err
	}
	if _, err := io.WriteString(l.Conn, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"); err != nil {
		return err
	}
	response, err := http.ReadResponse(l.Reader, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, isFine(response))
}

func isFine(response *http.Response) error {
	if response.StatusCode != http.StatusOK || response.Close {
		return fmt.Errorf("status %s, and it closes the connection: %v", response.Status, response.Close)
	}
	return nil
}

// keeps starts clients whose connections are kept open.
func (l *load) keeps(kind string, secure bool, n int) {
	for range n {
		kept, err := l.line(secure)
		if err != nil {
			l.Fatal(err)
		}
		l.Cleanup(func() { _ = kept.Close() })
		l.repeats(kind, kept.ask)
	}
}

// renews starts a client that opens a new connection for each request.
func (l *load) renews(kind string, secure bool) {
	l.repeats(kind, func() error {
		fresh, err := l.line(secure)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		return errors.Join(fresh.ask(), fresh.Close())
	})
}

// askBy sends a request with a Go client.
func (l *load) askBy(client *http.Client) error {
	// A request in flight gets its response before the load ends.
	request, err := http.NewRequestWithContext(context.WithoutCancel(l.ctx), http.MethodGet, "https://a.example/", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, isFine(response))
}

// twos starts clients with HTTP/2 connections. Each connection may be dialed only once.
func (l *load) twos(kind string, n int) {
	for range n {
		client := l.clientOf(l, secure2, anybody())
		transport := client.Transport.(*http.Transport)
		dial, dialed := transport.DialContext, new(atomic.Bool)
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if dialed.Swap(true) {
				return nil, errors.New("the connection is not kept")
			}
			return dial(ctx, network, address)
		}
		l.repeats(kind, func() error { return l.askBy(client) })
	}
}

// threes starts clients with HTTP/3 connections. Each connection may be dialed only once.
func (l *load) threes(kind string, n int) {
	for range n {
		client := l.clientOf(l, secure3, anybody())
		transport := client.Transport.(*http3.Transport)
		dial, dialed := transport.Dial, new(atomic.Bool)
		transport.Dial = func(ctx context.Context, address string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
			if dialed.Swap(true) {
				return nil, errors.New("the connection is not kept")
			}
			return dial(ctx, address, t, q)
		}
		l.repeats(kind, func() error { return l.askBy(client) })
	}
}

// reloads returns how often Caddy loads a configuration while clients send requests.
func reloads() int {
	if testing.Short() {
		return 50
	}
	return 200
}

// adapted returns the adapted Caddyfile of an ingress with more options.
func (in *ingress) adapted(options string) []byte {
	in.Helper()
	text := fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n%s\n}\n}\n", in.admin, in.http,
		in.https, in.folder, options)
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(onThisMachine(text)),
		map[string]any{"filename": "Caddyfile"})
	if err != nil {
		in.Fatal(err)
	}
	return config
}

// TestReloadsUnderLoad checks that no request fails, and no connection ends, while Caddy loads several configurations
// in a row.
func TestReloadsUnderLoad(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)))
	configs := [][]byte{in.adapted(""), in.adapted("disable_catch_all")}
	socket := in.socket("/echo")
	l := in.newLoad()
	l.keeps("HTTP/1.1, kept", false, 8)
	l.keeps("HTTPS with HTTP/1.1, kept", true, 8)
	l.twos("HTTP/2, kept", 8)
	l.threes("HTTP/3, kept", 4)
	l.renews("HTTP/1.1, new", false)
	l.renews("HTTP/1.1, new, too", false)
	l.renews("HTTPS with HTTP/1.1, new", true)
	l.repeats("HTTP/2, new", func() error {
		client := l.clientOf(l, secure2, anybody())
		defer client.CloseIdleConnections()
		return l.askBy(client)
	})
	l.repeats("HTTP/3, new", func() error {
		client := l.clientOf(l, secure3, anybody())
		return errors.Join(l.askBy(client), client.Transport.(*http3.Transport).Close())
	})
	begin := time.Now()
	for i := range reloads() {
		if err := caddy.Load(configs[i%len(configs)], true); err != nil {
			t.Fatal(err)
		}
		if err := socket.SetDeadline(time.Now().Add(deadline)); err != nil {
			t.Fatal(err)
		}
		socket.echoed()
		l.awaitEach()
	}
	t.Logf("%d loads in %v", reloads(), time.Since(begin))
	l.ends()
}

// TestRefusedReloadsUnderLoad checks the same for configurations that Caddy rejects: the previous configuration keeps
// serving requests.
func TestRefusedReloadsUnderLoad(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)))
	l := in.newLoad()
	l.keeps("HTTP/1.1, kept", false, 4)
	l.keeps("HTTPS with HTTP/1.1, kept", true, 4)
	l.twos("HTTP/2, kept", 4)
	l.threes("HTTP/3, kept", 2)
	l.renews("HTTP/1.1, new", false)
	l.renews("HTTPS with HTTP/1.1, new", true)
	// No Ingress in the folder has this class, so a response of the rejected configuration would be 404.
	other := fmt.Sprintf("{\nadmin %s\nk8singress {\nhttp %s\nhttps %s\nmanifests %s\n}\n}\n", in.admin, in.http,
		in.https, t.TempDir())
	for range 2 * orders {
		in.refused(other)
		l.awaitEach()
	}
	for _, address := range []string{in.http, in.https} {
		if n := listening(t, address); n > 1 {
			t.Errorf("%d sockets listen on %s", n, address)
		}
	}
	l.ends()
}

// TestReloadsDoNotWait checks that shutdown_delay applies only to addresses that are removed, and to the end of the
// process.
func TestReloadsDoNotWait(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)))
	const delay = time.Minute
	begin := time.Now()
	health := "\nhealth " + fixture.Address(t)
	for _, options := range []string{"shutdown_delay 1m" + health,
		"shutdown_delay 1m\ndisable_catch_all" + health, health} {
		if err := caddy.Load(in.adapted(options), true); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(begin); took >= delay {
		t.Errorf("it took %v", took)
	}
}

// TestAddressesComeAndGo checks that a removed address is closed after its connected clients got their responses, and
// that it can be added again.
func TestAddressesComeAndGo(t *testing.T) {
	in := inFront(t, sockets(t, make(chan string, 10)))
	here, there := in.http, fixture.Address(t)
	l := in.newLoad()
	l.keeps("HTTPS with HTTP/1.1, kept", true, 4)
	l.twos("HTTP/2, kept", 2)
	for range 3 {
		for _, address := range []string{there, here} {
			was := in.http
			kept, err := in.line(false)
			if err != nil {
				t.Fatal(err)
			}
			defer kept.Close()
			in.http = address
			if err := caddy.Load(in.adapted(""), true); err != nil {
				t.Fatal(err)
			}
			in.expect("a.example", "/", http.StatusOK, "")
			in.eventually("no listener", func() error {
				if conn, err := net.DialTimeout("tcp", was, deadline); err == nil {
					return errors.Join(errors.New("it accepts"), conn.Close())
				}
				return nil
			})
			// The server is the same, so the connection is kept.
			if err := kept.ask(); err != nil {
				t.Errorf("the connection of before: %v", err)
			}
		}
	}
	l.ends()
}
