package featuretests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// siege is a controller under attack. Clients of all versions of HTTP send honest requests all the time.
type siege struct {
	*ingress
	endpoint *victim
	honest   []*ingress
	before   holding
}

// victim is the endpoint. It counts the requests for /hang, to which it never responds, and for /large.
type victim struct{ hanging, large atomic.Int64 }

// largeSize is the size of the response for /large. A hundred of them are far more than maxBytes.
const largeSize = 8 << 20

// These are the limits for the whole process under attack, including endpoint and attacker, in addition to its use
// without an attack.
const (
	maxGoroutines = 1500
	maxBytes      = 128 << 20
)

func (v *victim) serve(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/hang":
		_, _ = io.Copy(io.Discard, r.Body) // Go's server only notices after the body that the client has disconnected.
		v.hanging.Add(1)
		hangs(w, r)
	case "/large":
		v.large.Add(1)
		piece := make([]byte, 64<<10)
		for range largeSize / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	default:
		_, _ = io.WriteString(w, "ok")
	}
}

// besiege starts a controller with additional objects, and connects the honest clients.
func besiege(t *testing.T, more ...string) *siege {
	t.Helper()
	s := &siege{endpoint: new(victim)}
	ip, port := endpointOf(t, s.endpoint.serve)
	web := service("one", port, ip) + rule("a", "a.example", "Prefix", "/", "one")
	s.ingress = start(t, class+web+strings.Join(more, ""))
	for _, version := range versions {
		s.honest = append(s.honest, s.speaking(t, version))
	}
	if err := s.ask(); err != nil {
		t.Fatal(err)
	}
	s.before = heldNow()
	return s
}

// ask sends a request with each honest client, and returns an error unless all get a response. It may be called on any
// goroutine.
func (s *siege) ask() (errs error) {
	for _, in := range s.honest {
		request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, in.origin("a.example")+"/", nil)
		if err != nil {
			return err
		}
		response, err := in.client.Do(request)
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("an honest client of %s: %w", in.version, err))
			continue
		}
		text, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil || response.StatusCode != http.StatusOK || string(text) != "ok" {
			err = fmt.Errorf("an honest client of %s gets %d %q: %w", in.version, response.StatusCode, text, err)
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// withstands runs an attack, which returns a function that ends its connections. It fails the test if an honest request
// fails during the attack or afterwards while the connections are open, if the process grows beyond the limits, or if
// resources are not released at the end.
func (s *siege) withstands(t *testing.T, attack func() (leave func())) {
	t.Helper()
	peak := new(holding)
	followed, asked := during(t, peak.follow), error(nil)
	answered := during(t, func(ctx context.Context) {
		for ctx.Err() == nil && asked == nil {
			asked = s.ask()
		}
	})
	leave := attack()
	answered()
	if err := errors.Join(asked, s.ask()); err != nil {
		t.Error(err)
	}
	followed()
	if peak.goroutines > s.before.goroutines+maxGoroutines || peak.bytes > s.before.bytes+maxBytes {
		t.Errorf("under attack it holds %v; before: %v", peak, s.before)
	}
	leave()
	fixture.Eventually(t, "what the attack took is given back", func() error { return heldNow().beyond(s.before) })
}

// during runs do on another goroutine. The returned function ends its context and waits for it.
func during(t *testing.T, do func(ctx context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { do(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// follow records the highest numbers of goroutines and bytes until the context ends.
func (h *holding) follow(ctx context.Context) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		h.goroutines, h.bytes = max(h.goroutines, runtime.NumGoroutine()), max(h.bytes, objects())
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// reached returns a function that waits until an endpoint has received the given number of additional requests.
func reached(t testing.TB, counter *atomic.Int64, want int64) (wait func()) {
	want += counter.Load()
	return func() {
		t.Helper()
		fixture.Holds(t, "the requests have reached the endpoint", func() bool { return counter.Load() >= want })
	}
}

// floodsOfHTTP1 are texts that an HTTP/1.1 client sends repeatedly after a start.
var floodsOfHTTP1 = map[string]struct {
	begin, again string
	// want is the status of the response, after which the connection ends.
	want int
}{
	"a request line without end": {"GET /", strings.Repeat("x", 1000), tooLargeHead},
	"a head without end":         {getHead, strings.Repeat("X-A: b\r\n", 100), tooLargeHead},
	"a field without end":        {getHead + "X-A:", strings.Repeat("x", 1000), tooLargeHead},
	"empty lines":                {"", strings.Repeat("\r\n", 100), http.StatusBadRequest},
	"chunks of one byte":         {chunkedPost, strings.Repeat("1\r\nx\r\n", 100), http.StatusRequestEntityTooLarge},
	"a chunk extension":          {chunkedPost + "1;", strings.Repeat("x", 1000), http.StatusBadRequest},
	"chunk extensions":           {chunkedPost, "1;" + strings.Repeat("x", 1000) + "\r\nx\r\n", http.StatusBadRequest},
	"a chunk size of zeros":      {chunkedPost, strings.Repeat("0", 1000), http.StatusBadRequest},
	"trailers":                   {chunkedPost + "0\r\n", strings.Repeat("X-A: b\r\n", 100), tooLargeHead},
	"a trailer":                  {chunkedPost + "0\r\nX-A:", strings.Repeat("x", 1000), tooLargeHead},
}

const (
	getHead     = "GET / HTTP/1.1\r\nHost: a.example\r\n"
	chunkedPost = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"

	tooLargeHead = http.StatusRequestHeaderFieldsTooLarge
)

// TestFloodsOfHTTP1 sends requests without end, with and without TLS. It checks that the server responds with an error
// and closes the connection, and that a client that sends many requests and reads no response is throttled.
func TestFloodsOfHTTP1(t *testing.T) {
	s := besiege(t)
	for name, c := range floodsOfHTTP1 {
		t.Run(name, func(t *testing.T) {
			s.byHTTP1(t, func(t *testing.T, in *ingress) {
				s.withstands(t, func() (leave func()) {
					d := in.connect()
					go d.repeat(c.begin, c.again)
					if got := d.reply(http.MethodPost); got.status != c.want {
						t.Errorf("got %q, want %d", got, c.want)
					}
					d.ends()
					return func() { _ = d.Close() }
				})
			})
		})
	}
	t.Run("requests whose answers are not read", func(t *testing.T) {
		s.byHTTP1(t, func(t *testing.T, in *ingress) {
			s.withstands(t, func() (leave func()) {
				d, first := in.connect(), reached(t, &s.endpoint.large, 1)
				go d.repeat("", get("/large"))
				first()
				return func() { _ = d.Close() }
			})
		})
	})
}

// repeat writes begin, and then again repeatedly until the connection ends.
func (d *dialed) repeat(begin, again string) {
	_, err := io.WriteString(d.Conn, begin)
	for err == nil {
		_, err = io.WriteString(d.Conn, again)
	}
}
