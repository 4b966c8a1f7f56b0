package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/clients"
	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
)

// patience is how long a test waits for what has to come.
const patience = fixture.Patience

func settings() *proxy.Settings {
	retry, err := proxy.NewRetry([]ir.RetryOn{ir.RetryOnError, ir.RetryOnTimeout})
	if err != nil {
		panic(err)
	}
	return &proxy.Settings{Connect: patience, Read: patience, Write: patience, Tries: 3, MaxBody: ir.NoLimit, Retry: retry}
}

// endpoint is a server that speaks TCP, so that it can do what no HTTP server does.
type endpoint struct {
	net.Listener
	connections atomic.Int32
	requests    atomic.Int32
}

// serve calls answer for each request of each connection, until it returns false.
func serve(t *testing.T, answer func(conn net.Conn, request *http.Request) bool) *endpoint {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{Listener: listener}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			e.connections.Add(1)
			go e.converse(conn, answer)
		}
	}()
	return e
}

func (e *endpoint) converse(conn net.Conn, answer func(net.Conn, *http.Request) bool) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	for {
		request, err := http.ReadRequest(reader)
		if err != nil {
			return
		}
		e.requests.Add(1)
		if _, err := io.Copy(io.Discard, request.Body); err != nil || !answer(conn, request) {
			return
		}
	}
}

// says answers each request with the same bytes.
func says(answer string) func(net.Conn, *http.Request) bool {
	return func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, answer)
		return err == nil
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func hangUp(net.Conn, *http.Request) bool { return false }

// inTurn are endpoints that are asked in turn, and how they did.
type inTurn struct {
	endpoints []*endpoint
	next      int
	failed    []bool
	// answered has since when each answer was waited for; gone says that none of them is an endpoint any more.
	answered []time.Time
	gone     atomic.Bool
}

func of(endpoints ...*endpoint) *inTurn { return &inTurn{endpoints: endpoints} }

func (i *inTurn) Next() (string, bool) {
	if len(i.endpoints) == 0 {
		return "", false
	}
	e := i.endpoints[i.next%len(i.endpoints)]
	i.next++
	return e.Addr().String(), true
}

func (i *inTurn) Done(failed bool) { i.failed = append(i.failed, failed) }

func (i *inTurn) Answered(since time.Time) { i.answered = append(i.answered, since) }

func (i *inTurn) Listed() func() bool { return func() bool { return !i.gone.Load() } }

func pool(t *testing.T) *proxy.Pool {
	p := proxy.NewPool()
	t.Cleanup(p.Close)
	return p
}

func request(t *testing.T, method, body string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, "http://shop.example/a?b=c", strings.NewReader(body))
	r.RequestURI = ""
	return r
}

// outcome is what the client gets: the status of the error or of the answer.
func outcome(w *httptest.ResponseRecorder, err error) string {
	var failed caddyhttp.HandlerError
	switch {
	case errors.As(err, &failed):
		return fmt.Sprintf("error %d", failed.StatusCode)
	case err != nil:
		return err.Error()
	}
	return fmt.Sprintf("%d %s", w.Code, w.Body)
}

func forward(p *proxy.Pool, r *http.Request, endpoints *inTurn) string {
	w := httptest.NewRecorder()
	return outcome(w, send(p, w, r, settings(), endpoints))
}

// send does what the handler does for an ordinary request.
func send(p *proxy.Pool, w http.ResponseWriter, r *http.Request, s *proxy.Settings, endpoints *inTurn) error {
	x := proxy.NewExchange(s, endpoints)
	defer x.Close()
	if err := x.ReadBody(r); err != nil {
		return err
	}
	client := clients.New(ir.Clients{}).Of(r)
	x.Tell(r, &client, "id", client.IP, nil)
	return p.Forward(w, r, x)
}

// refusing is an address that nobody listens on.
func refusing(t *testing.T) *endpoint {
	e := serve(t, hangUp)
	e.Close()
	return e
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	e, p := serve(t, says(fine)), pool(t)
	for range 20 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Fatal(got)
		}
	}
	if n := e.connections.Load(); n != 1 {
		t.Errorf("%d connections for 20 requests", n)
	}
}

func TestTries(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		first  func(t *testing.T) *endpoint
		want   string
	}{
		"GET, refused":          {http.MethodGet, refusing, "200 ok"},
		"POST, refused":         {http.MethodPost, refusing, "200 ok"},
		"GET, no answer":        {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, hangUp) }, "200 ok"},
		"PUT, no answer":        {http.MethodPut, func(t *testing.T) *endpoint { return serve(t, hangUp) }, "200 ok"},
		"POST, no answer":       {http.MethodPost, func(t *testing.T) *endpoint { return serve(t, hangUp) }, "error 502"},
		"GET, half a head":      {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, half) }, "200 ok"},
		"PATCH, half a head":    {http.MethodPatch, func(t *testing.T) *endpoint { return serve(t, half) }, "error 502"},
		"GET, not HTTP":         {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, says("SSH-2.0-x\r\n\r\n")) }, "error 502"},
		"GET, other protocol":   {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, says(switching)) }, "error 502"},
		"GET, endless head":     {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, endless) }, "error 502"},
		"GET, no status":        {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, says(noStatus)) }, "error 502"},
		"GET, two lengths":      {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, says(twoLengths)) }, "error 502"},
		"GET, error of its own": {http.MethodGet, func(t *testing.T) *endpoint { return serve(t, says(serverError)) }, "500 x"},
	} {
		t.Run(name, func(t *testing.T) {
			good := serve(t, says(fine))
			if got := forward(pool(t), request(t, test.method, "body"), of(test.first(t), good)); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

const (
	switching   = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
	noStatus    = "HTTP/1.1 099 Nothing\r\nContent-Length: 0\r\n\r\n"
	twoLengths  = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"
	serverError = "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx"
)

func half(conn net.Conn, _ *http.Request) bool {
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-")
	return false
}

func endless(conn net.Conn, _ *http.Request) bool {
	_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
	for err == nil {
		_, err = io.WriteString(conn, "X-Filler: "+strings.Repeat("x", 1000)+"\r\n")
	}
	return false
}

func TestThreeTriesAtMost(t *testing.T) {
	bad := serve(t, hangUp)
	if got := forward(pool(t), request(t, http.MethodGet, ""), of(bad)); got != "error 502" {
		t.Error(got)
	}
	if n := bad.requests.Load(); n != 3 {
		t.Errorf("%d tries", n)
	}
}

func TestNoEndpoint(t *testing.T) {
	if got := forward(pool(t), request(t, http.MethodGet, ""), of()); got != "error 503" {
		t.Error(got)
	}
}

func TestAnEndpointThatHangs(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	e := serve(t, func(net.Conn, *http.Request) bool { <-release; return false })
	s := settings()
	s.Read, s.Tries = 50*time.Millisecond, 1
	w := httptest.NewRecorder()
	if got := outcome(w, send(pool(t), w, request(t, http.MethodGet, ""), s, of(e))); got != "error 504" {
		t.Error(got)
	}
}

// TestSlowButAlive holds that the timeout is for times without a byte, not for the whole answer.
func TestSlowButAlive(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, err := io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
		pace := time.NewTicker(20 * time.Millisecond)
		defer pace.Stop()
		for range 20 {
			<-pace.C
			_, err = io.WriteString(conn, "x")
		}
		return err == nil
	})
	s := settings()
	s.Read = 200 * time.Millisecond
	// On a machine that is busy, the endpoint says nothing for longer now and then.
	fixture.Eventually(t, "all of it", func() error {
		w := httptest.NewRecorder()
		if got := outcome(w, send(pool(t), w, request(t, http.MethodGet, ""), s, of(e))); got != "200 "+strings.Repeat("x", 20) {
			return errors.New(got)
		}
		return nil
	})
}

// TestAClosedIdleConnectionHurtsNobody: not even a request that must not be sent twice.
func TestAClosedIdleConnectionHurtsNobody(t *testing.T) {
	closed := make(chan struct{}, 10)
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, fine)
		_ = conn.Close()
		closed <- struct{}{}
		return false
	})
	p := pool(t)
	for range 5 {
		if got := forward(p, request(t, http.MethodPost, "body"), of(e)); got != "200 ok" {
			t.Error(got)
		}
		<-closed
	}
}

// TestAnAnswerThatNobodyAskedFor holds that what an endpoint says between two requests is not taken for the next answer.
func TestAnAnswerThatNobodyAskedFor(t *testing.T) {
	e := serve(t, says(fine+"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"))
	p := pool(t)
	for range 5 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Error(got)
		}
	}
	if n := e.connections.Load(); n != 5 {
		t.Errorf("%d connections", n)
	}
}

func TestAnAnswerThatBreaksOff(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		return false
	})
	w := httptest.NewRecorder()
	err := send(pool(t), w, request(t, http.MethodGet, ""), settings(), of(e))
	if !errors.Is(err, proxy.ErrCut) || w.Body.String() != "half" || e.requests.Load() != 1 {
		t.Errorf("error %v; the client got %q, and the endpoint %d requests", err, w.Body, e.requests.Load())
	}
}

// slowly is a client that takes its time for what it gets.
type slowly struct{ *httptest.ResponseRecorder }

func (s slowly) Write(b []byte) (int, error) {
	<-time.After(150 * time.Millisecond)
	return s.ResponseRecorder.Write(b)
}

// TestASlowClientIsNoSlowEndpoint holds that the endpoint's time does not run while the client takes its own.
func TestASlowClientIsNoSlowEndpoint(t *testing.T) {
	const size = 300_000
	e := serve(t, says(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("x", size))))
	s := settings()
	s.Read = 50 * time.Millisecond
	// On a machine that is busy, the endpoint is slow now and then.
	fixture.Eventually(t, "all of it", func() error {
		w := slowly{httptest.NewRecorder()}
		if err := send(pool(t), w, request(t, http.MethodGet, ""), s, of(e)); err != nil || w.Body.Len() != size {
			return fmt.Errorf("%d bytes, error %w", w.Body.Len(), err)
		}
		return nil
	})
}

// TestAConnectionOutlivesItsDeadline: the deadline of the last request says nothing about the next one.
func TestAConnectionOutlivesItsDeadline(t *testing.T) {
	s := settings()
	s.Read = 20 * time.Millisecond
	// On a machine that is busy, the endpoint is slow now and then.
	fixture.Eventually(t, "all of them", func() error {
		e, p := serve(t, says(fine)), pool(t)
		for range 4 {
			w := httptest.NewRecorder()
			if got := outcome(w, send(p, w, request(t, http.MethodGet, ""), s, of(e))); got != "200 ok" {
				return errors.New(got)
			}
			<-time.After(2 * s.Read)
		}
		if n := e.connections.Load(); n != 1 {
			return fmt.Errorf("%d connections", n)
		}
		return nil
	})
}

// TestAnInterimAnswerIsNoAnswer holds that what may not be repeated is not repeated after one either.
func TestAnInterimAnswerIsNoAnswer(t *testing.T) {
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 102 Processing\r\n\r\n")
		return false
	})
	if got := forward(pool(t), request(t, http.MethodPost, "body"), of(e)); got != "error 502" || e.requests.Load() != 1 {
		t.Errorf("%s after %d requests", got, e.requests.Load())
	}
}

func TestManyInterimAnswers(t *testing.T) {
	e := serve(t, says(strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 50)+fine))
	w := &interim{ResponseRecorder: httptest.NewRecorder()}
	if got := outcome(w.ResponseRecorder, send(pool(t), w, request(t, http.MethodPut, "body"), settings(), of(e))); got != "200 ok" {
		t.Error(got)
	}
	if w.count != 50 {
		t.Errorf("%d interim answers", w.count)
	}
}

// interim counts interim answers, which httptest takes for the answer.
type interim struct {
	*httptest.ResponseRecorder
	count int
}

func (i *interim) WriteHeader(status int) {
	if status < http.StatusOK {
		i.count++
		return
	}
	i.ResponseRecorder.WriteHeader(status)
}

// TestRequestWithoutHost: HTTP/1.0 needs none, HTTP/1.1 does.
func TestRequestWithoutHost(t *testing.T) {
	hosts := make(chan string, 1)
	e := serve(t, func(conn net.Conn, r *http.Request) bool {
		hosts <- r.Host
		return says(fine)(conn, r)
	})
	r := request(t, http.MethodGet, "")
	r.Host = ""
	if got := forward(pool(t), r, of(e)); got != "200 ok" {
		t.Error(got)
	}
	if host := <-hosts; host != e.Addr().String() {
		t.Errorf("host %q", host)
	}
}

func TestAClientThatGoesAway(t *testing.T) {
	arrived, gone := make(chan struct{}), make(chan error, 1)
	e := serve(t, func(conn net.Conn, _ *http.Request) bool {
		close(arrived)
		_, err := conn.Read(make([]byte, 1))
		gone <- err
		return false
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		<-arrived
		leave()
	}()
	if got := forward(pool(t), request(t, http.MethodGet, "").WithContext(ctx), of(e)); got != "error 499" {
		t.Error(got)
	}
	select {
	case err := <-gone:
		if err == nil {
			t.Error("the endpoint got another byte")
		}
	case <-time.After(patience):
		t.Error("the endpoint still works for nobody")
	}
}

// TestNothingEndsALine holds that neither a header nor a path can put a line of its own into a request.
func TestNothingEndsALine(t *testing.T) {
	e := serve(t, says(fine))
	for name, spoil := range map[string]func(*http.Request){
		"header value": func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
		"header name":  func(r *http.Request) { r.Header["X-A: b\r\nX-B"] = []string{"b"} },
		"host":         func(r *http.Request) { r.Host = "a\r\nX-B: b" },
		"method":       func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX-B: b\r\n\r\nGET" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "a HTTP/1.1\r\nX-B: b\r\n\r\n" },
		"opaque":       func(r *http.Request) { r.URL.Opaque = "/a b" },
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, http.MethodGet, "")
			spoil(r)
			if got := forward(pool(t), r, of(e)); got != "error 400" {
				t.Error(got)
			}
		})
	}
	if n := e.requests.Load(); n != 0 {
		t.Errorf("%d requests have reached the endpoint", n)
	}
}

func TestClosedPoolKeepsNothing(t *testing.T) {
	e, p := serve(t, says(fine)), proxy.NewPool()
	forward(p, request(t, http.MethodGet, ""), of(e))
	p.Close()
	for range 2 {
		if got := forward(p, request(t, http.MethodGet, ""), of(e)); got != "200 ok" {
			t.Error(got)
		}
	}
	if n := e.connections.Load(); n != 3 {
		t.Errorf("%d connections", n)
	}
}

func TestManyAtOnce(t *testing.T) {
	e, p := serve(t, says(fine)), pool(t)
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 50 {
				if got := forward(p, request(t, http.MethodPost, "body"), of(e)); got != "200 ok" {
					t.Error(got)
				}
			}
		})
	}
	all.Wait()
	if n := e.connections.Load(); n > 16 {
		t.Errorf("%d connections for 16 clients", n)
	}
}

func TestOrdinary(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*http.Request, *proxy.Settings)
		want   bool
	}{
		"plain":      {func(*http.Request, *proxy.Settings) {}, true},
		"keep-alive": {func(r *http.Request, _ *proxy.Settings) { r.Header.Set("Connection", "Keep-Alive") }, true},
		"websocket": {func(r *http.Request, _ *proxy.Settings) {
			r.Header = http.Header{"Upgrade": {"WebSocket"}, "Connection": {"keep-alive, Upgrade"}}
		}, false},
		"h2c": {func(r *http.Request, _ *proxy.Settings) {
			r.Header = http.Header{"Upgrade": {"h2c"}, "Connection": {"Upgrade"}}
		}, true},
		"hop by hop":       {func(r *http.Request, _ *proxy.Settings) { r.Header.Set("Connection", "X-Secret") }, true},
		"unknown length":   {func(r *http.Request, _ *proxy.Settings) { r.ContentLength = -1 }, true},
		"streamed":         {func(_ *http.Request, s *proxy.Settings) { s.StreamRequest = true }, false},
		"large body":       {func(r *http.Request, _ *proxy.Settings) { setBody(r, 100_000) }, false},
		"trailers to come": {func(r *http.Request, _ *proxy.Settings) { r.Trailer = http.Header{"X-Sum": nil} }, false},
		"gRPC":             {func(_ *http.Request, s *proxy.Settings) { s.Protocol = ir.GRPC }, false},
		"as the client":    {func(_ *http.Request, s *proxy.Settings) { s.Protocol = ir.AutoHTTP }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, s := request(t, http.MethodGet, "body"), settings()
			test.change(r, s)
			x := proxy.NewExchange(s, of())
			defer x.Close()
			if err := x.ReadBody(r); err != nil {
				t.Fatal(err)
			}
			if got := x.Ordinary(r); got != test.want {
				t.Errorf("ordinary is %v", got)
			}
		})
	}
}

func setBody(r *http.Request, size int) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", size))), int64(size)
}
