package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// backendFor starts a backend that ends with the test.
func backendFor(t *testing.T) *backend {
	t.Helper()
	b, err := startBackend()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	return b
}

// directTo returns a contestant that is the backend itself, without a proxy process.
func directTo(b *backend) *contestant {
	return &contestant{name: "backend", http: b.address, idle: true, answered: make([][]figures, len(works))}
}

// measured repeats a work with longer durations until enough accepts the figures, because a busy machine may need more
// time.
func measured(t *testing.T, w work, c *contestant, enough func(figures) bool) figures {
	t.Helper()
	o := options{connections: 2, rounds: 1, duration: 30 * time.Millisecond}
	var f figures
	fixture.Holds(t, "an answer to "+w.name, func() bool {
		var err error
		if f, err = w.send(t.Context(), o, c); err != nil {
			t.Fatal(err)
		}
		o.duration *= 2
		return enough(f)
	})
	return f
}

// TestWorksReachTheBackend checks that each kind of request without TLS gets the response that it requires.
func TestWorksReachTheBackend(t *testing.T) {
	c := directTo(backendFor(t))
	for _, w := range works {
		if w.tool != "" || strings.HasPrefix(w.name, "HTTPS") {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			f := measured(t, w, c, func(f figures) bool { return f.perSecond > 0 })
			if f.p50 == 0 || f.p99 < f.p50 || f.processor != 0 {
				t.Errorf("figures are %+v", f)
			}
		})
	}
}

// TestRequestsOfWorks checks that net/http parses the requests as intended.
func TestRequestsOfWorks(t *testing.T) {
	browser, upload := load{header: browserHeader}, load{upload: longBody(shortUpload), path: "/up"}
	for _, c := range []struct {
		load         load
		method, path string
		fields, size int
	}{
		{load{}, "GET", "/", 0, 0}, {browser, "GET", "/", 10, 0}, {upload, "POST", "/up", 1, shortUpload},
	} {
		text := c.load.request("a.test")
		request, err := http.ReadRequest(bufio.NewReader(strings.NewReader(string(text))))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(request.Body)
		if err != nil || len(body) != c.size || request.Method != c.method || request.URL.Path != c.path ||
			request.Host != "a.test" ||
			len(request.Header) != c.fields {
			t.Errorf("%s %s with %d bytes and %v, error %v", request.Method, request.URL, len(body),
				request.Header, err)
		}
	}
	if size := len(browser.request(hostName(1))); size < 750 || size > 850 {
		t.Errorf("the request of a browser has %d bytes, not about 800", size)
	}
}

// TestLongResponsesAreCompared checks that a response that differs in its last byte is rejected.
func TestLongResponsesAreCompared(t *testing.T) {
	body := longBody(longAnswer)
	for _, got := range []string{body, body[:len(body)-1] + "?", body[:len(body)-1]} {
		text := string(answerWithBody(body))
		text = strings.TrimSuffix(text, body) + got
		if err := readAnswer(bufio.NewReader(strings.NewReader(text)), body); (err == nil) != (got == body) {
			t.Errorf("error %v for an answer of %d bytes", err, len(got))
		}
	}
}

func TestBackendResponses(t *testing.T) {
	b := backendFor(t)
	for path, want := range map[string]string{"/": answerBody, "/x": answerBody,
		sizePath(mediumAnswer): longBody(mediumAnswer)} {
		response, err := get(t.Context(), "http://"+b.address+path, "")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil || string(body) != want {
			t.Errorf("%s: %d bytes, want %d, error %v", path, len(body), len(want), err)
		}
		response.Body.Close()
	}
}

func TestSlowRequestsAreCounted(t *testing.T) {
	b := backendFor(t)
	answered := make(chan error, 1)
	go func() {
		connection, err := load{address: b.address, body: answerBody, path: slowPath}.open(t.Context(), hostName(1))
		if err == nil {
			err = connection.Close()
		}
		answered <- err
	}()
	fixture.Holds(t, "a request under way", func() bool { return b.slow.Load() == 1 })
	close(b.released)
	if err := <-answered; err != nil {
		t.Error(err)
	}
	fixture.Holds(t, "no request under way", func() bool { return b.slow.Load() == 0 })
}

// TestWebSocketsNoticeTheirEnd checks that a message comes back, and that a closed connection is a failure.
func TestWebSocketsNoticeTheirEnd(t *testing.T) {
	c := directTo(backendFor(t))
	var connection net.Conn
	for range 2 {
		if err := c.exchangeOn(t.Context(), &connection); err != nil {
			t.Fatal(err)
		}
	}
	if err := connection.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.exchangeOn(t.Context(), &connection); err == nil {
		t.Error("a connection that is closed is no failure")
	}
}

// TestHAProxyAndNginxServe checks that haproxy and nginx respond over HTTP and HTTPS with the configurations of the
// benchmark.
func TestHAProxyAndNginxServe(t *testing.T) {
	b := backendFor(t)
	for name, program := range map[string]struct {
		start   startOther
		missing string
	}{"nginx": {startNginx, nginxMissing}, "haproxy": {startHAProxy, haproxyMissing}} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			c, err := program.start(t.Context(), site{folder: folder, backend: b.address}, certificateFile(t, folder))
			if c == nil && err == nil {
				t.Skip(program.missing)
			}
			defer c.stop()
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range works {
				if w.tool != "" && serverProgram(w.tool) == "" {
					continue
				}
				measured(t, w, c, func(f figures) bool { return f.perSecond > 0 && f.processor > 0 })
			}
		})
	}
}

func TestStockWebConfigIsCaddys(t *testing.T) {
	m, err := newMaker()
	if err != nil {
		t.Fatal(err)
	}
	certificate, key, err := m.issue(hostName(secureHost))
	if err != nil {
		t.Fatal(err)
	}
	c, err := newContestant(t.TempDir(), "stock", 1)
	if err != nil {
		t.Fatal(err)
	}
	isCaddys(t, stockWebConfig(c, "127.0.0.1:9", certificate, key))
}

func TestH2loadIsRead(t *testing.T) {
	const output = `finished in 1.00s, 41234.50 req/s, 1.2MB/s
requests: 40000 total, 40000 started, 40000 done, 40000 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 40000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 2.93KB (3003) total
`
	if rate, err := readH2load(output, 40000); err != nil || rate != 41234.5 {
		t.Errorf("%v requests a second, error %v", rate, err)
	}
	for _, wrong := range []string{"", strings.Replace(output, "0 5xx", "3 5xx", 1),
		strings.Replace(output, "40000 2xx", "39999 2xx", 1)} {
		if _, err := readH2load(wrong, 40000); err == nil {
			t.Errorf("no error for %q", wrong)
		}
	}
}

func TestRuntimeFiguresAreRead(t *testing.T) {
	const text = "heap profile: 1: 2\n\n# runtime.MemStats\n# Alloc = 1\n# TotalAlloc = 20\n# Mallocs = 30\n# " +
		"HeapAlloc = 40\n# HeapInuse = 50\n" +
		"# Stack = 60 / 70\n"
	if got, err := readRuntimeFigures(text); err != nil ||
		got != (runtimeFigures{mallocs: 30, total: 20, heap: 40, heapInUse: 50, stacks: 60}) {
		t.Errorf("%+v, error %v", got, err)
	}
	if _, err := readRuntimeFigures("nothing"); err == nil {
		t.Error("no figures are no error")
	}
}

// TestAnotherIsFirstInEachRound checks that each round starts with another contestant, because the first one is
// affected by the state in which the previous one leaves the machine.
func TestAnotherIsFirstInEachRound(t *testing.T) {
	all := installed(&contestant{name: "a"}, nil, &contestant{name: "b"}, &contestant{name: "c"})
	var order []string
	for round := range 4 {
		names := ""
		for _, c := range rotated(all, round) {
			names += c.name
		}
		order = append(order, names)
	}
	if got := strings.Join(order, " "); got != "abc bca cab abc" {
		t.Errorf("the order is %s", got)
	}
}

func TestWorksAreHeldToNginx(t *testing.T) {
	of := func(perSecond float64, processor time.Duration) *contestant {
		c := directTo(&backend{})
		for i := range works {
			c.answered[i] = []figures{{perSecond: perSecond, processor: processor}}
		}
		return c
	}
	p := &proxies{ours: of(90, 20*time.Microsecond), nginx: of(100, 10*time.Microsecond), stock: of(50, 0)}
	p.filtered = [2][]figures{{{perSecond: 99}}, {{perSecond: 100}}}
	var text strings.Builder
	if err := p.write(options{rounds: 1}, &text); err != nil {
		t.Fatal(err)
	}
	if err := writeBars(&text, p.bars()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| short GET | 90 (20.0 µs) | 100 (10.0 µs) | - | 50 (-) | 0.90 | 2.00 |",
		"| short GET, three filters | 99 (-) |", haproxyMissing,
		"| short GET, of nginx | at least 0.80 | 0.90 (median of 1 rounds, 0.90 to 0.90), with 2.00 of the " +
			"processor time | yes |",
		"| answer of 1 MiB, of nginx | at least 2.00 | 0.90 (median of 1 rounds, 0.90 to 0.90), with 2.00 of the " +
			"processor time | no |",
		"| three filters against none | at least 0.97 | 0.99 (median of 1 rounds, 0.99 to 0.99) | yes |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, text.String())
		}
	}
	if p.nginx = nil; p.bars()[0].Measured != nginxMissing || p.bars()[0].Met != "" {
		t.Errorf("without nginx: %+v", p.bars()[0])
	}
	p.nginx, p.ours.answered[len(works)-1] = p.stock, nil
	if b := p.bars()[len(works)-1]; b.Measured != h2loadMissing || b.Met != "" {
		t.Errorf("without h2load: %+v", b)
	}
}

// TestWorksAreHeldToACommit checks that each row has its own ratio, and the minimum ratio as its bar.
func TestWorksAreHeldToACommit(t *testing.T) {
	d := newWorkDuel(options{rounds: 1, against: "HEAD~5"})
	for i := range d.works[:len(d.works)-1] {
		d.works[i].requests = series{{99}, {100}}
		d.works[i].processor = series{{float64(20 * time.Microsecond)}, {float64(10 * time.Microsecond)}}
	}
	d.works[1].requests = series{{90}, {100}}
	var text strings.Builder
	if err := errors.Join(d.write(&text), writeBars(&text, d.bars())); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| short GET | 99 (20.0 µs) | 100 (10.0 µs) | 0.99 | 0.50 |",
		"| short GET, against HEAD~5 | at least 0.98 | 0.99 (median of 1 rounds, 0.99 to 0.99) | yes |",
		"| short GET, 10 fields of a browser, against HEAD~5 | at least 0.98 | 0.90 (median of 1 rounds, 0.90 to " +
			"0.90) | no |",
		"| short GET, three filters | - | - | - | - |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, text.String())
		}
	}
}

// TestFailuresAreReported checks that a crowd counts failures as well as successes, and requires a response to each
// kind of client.
func TestFailuresAreReported(t *testing.T) {
	var turns, turnsThatFail atomic.Int64
	fine := repeated("fine", 2, func(context.Context, int) error { turns.Add(1); return nil })
	failing := repeated("failing", 1, func(context.Context, int) error {
		if turnsThatFail.Add(1)%2 == 0 {
			return net.ErrClosed
		}
		return nil
	})
	all := crowd{fine, failing}
	err := all.while(t.Context(), func() error {
		fixture.Holds(t, "many turns", func() bool { return turns.Load() > 100 && turnsThatFail.Load() > 100 })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if all.failed() == 0 || fine.tally.failed != 0 ||
		!strings.Contains(all.failures(), "failing: "+net.ErrClosed.Error()) {
		t.Errorf("failures are %s", all.failures())
	}
	var text strings.Builder
	want := row("fine", thousands(float64(len(fine.tally.latencies))), "0")
	if err := all.write(&text, ""); err != nil || !strings.Contains(text.String(), want) {
		t.Errorf("error %v in:\n%s", err, text.String())
	}
	silent := crowd{repeated("silent", 1, func(context.Context, int) error { return net.ErrClosed })}
	if err := silent.while(t.Context(), func() error { return nil }); err == nil {
		t.Error("clients that are never answered are no error")
	}
}

// TestLeavingClients checks that a client leaves when a response asks it to, that a request without a response is a
// failure, and that a failed connection is not a failure.
func TestLeavingClients(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		lost    bool
		answers int
	}{
		"asked to leave": {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\n" + answerBody, false, 1},
		"not answered":   {"", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			listener := fixture.Listen(t)
			go func() {
				connection, err := listener.Accept()
				if err != nil {
					return
				}
				listener.Close()
				if _, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
					_, _ = io.WriteString(connection, c.answer)
				}
				connection.Close()
			}()
			to := &contestant{http: listener.Addr().String()}
			got := to.leavingClients("leaving", 1, false).ask(t.Context())
			if (got.failed > 0) != c.lost || len(got.latencies) != c.answers {
				t.Errorf("%d are answered, %d lost: %v", len(got.latencies), got.failed, got.first)
			}
		})
	}
}

// TestCaddyfileHasTheOptions checks that the Caddyfile contains the addresses of the contestant and the given options.
func TestCaddyfileHasTheOptions(t *testing.T) {
	c := &contestant{admin: "127.0.0.1:1", http: "127.0.0.1:2", https: "127.0.0.1:3", folder: filepath.Join("a", "b")}
	text := string(c.caddyfile("shutdown_delay 1s", "disable_catch_all"))
	for _, want := range []string{"admin 127.0.0.1:1", "http 127.0.0.1:2", "https 127.0.0.1:3",
		"manifests a/b/manifests",
		"shutdown_delay 1s\n", "disable_catch_all\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in:\n%s", want, text)
		}
	}
}
