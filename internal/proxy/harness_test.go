package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/fixture"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/proxy"
	"github.com/k8singress/k8singress/internal/realip"
)

// patience is how long a test waits for what has to come.
const patience = fixture.Patience

// settings are those of most tests, with other conditions for another endpoint where some are given.
func settings(on ...ir.RetryOn) *proxy.Settings {
	s, err := proxy.NewSettings(ir.Proxy{
		Attempts: ir.Attempts{Connect: patience, Read: patience, Write: patience, On: on}, Forwarding: ir.Forwarding{MaxBody: ir.NoLimit},
	}.WithDefaults())
	if err != nil {
		panic(err)
	}
	return s
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
	e := &endpoint{Listener: fixture.Listen(t)}
	fixture.Serve(e, func(conn net.Conn) {
		e.connections.Add(1)
		e.converse(conn, answer)
	})
	return e
}

func (e *endpoint) converse(conn net.Conn, answer func(net.Conn, *http.Request) bool) {
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

func (i *inTurn) Variable(name string) string { return name }

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
	client := realip.New(ir.Clients{}).Of(r)
	x.Tell(r, &client, "id", client.IP)
	return p.Forward(w, r, x)
}

// refusing is an address that nobody listens on.
func refusing(t *testing.T) *endpoint {
	e := serve(t, hangUp)
	e.Close()
	return e
}
