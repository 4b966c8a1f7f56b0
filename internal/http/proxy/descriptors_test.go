package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/http/callout"
	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/realip"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/reach"
)

// TestBodiesWithoutDescriptor checks that a request or response body that gets no descriptor for a file is forwarded as
// it arrives and counted, and that closing a file makes room for the next one.
func TestBodiesWithoutDescriptor(t *testing.T) {
	withLimit(t, bodyFiles.budget(), 2)
	withoutRoom(t, bodyMemory())
	want := bytes.Repeat([]byte("0123456789abcdef"), 10<<10)
	first := bodyOf(want)
	if err := first.readBody(); err != nil || first.body.file == nil {
		t.Fatalf("the first body has no file: %v", err)
	}
	refused := bodyFiles.refused.Load()
	second := bodyOf(want)
	err := second.readBody()
	if got, _ := io.ReadAll(second.body.reader()); err != nil || second.body.rest == nil || !bytes.Equal(got, want) {
		t.Errorf("without a descriptor, %d bytes of %d are passed on: %v", len(got), len(want), err)
	}
	second.body.close()
	e := newResponseBuffer("shop", bytes.NewReader(want))
	if got, err := io.ReadAll(e); err != nil || !bytes.Equal(got, want) || e.file != nil {
		t.Errorf("without a descriptor, %d bytes of a response of %d are passed on: %v", len(got), len(want), err)
	}
	e.close(func() {})
	if got := bodyFiles.refused.Load() - refused; got != 2 {
		t.Errorf("%d bodies are counted, want 2", got)
	}
	first.body.close()
	third := bodyOf(want)
	if err := third.readBody(); err != nil || third.body.file == nil {
		t.Errorf("after a file was closed, the next body has none: %v", err)
	}
	third.body.close()
}

// TestNamespacesShareRoom checks that a namespace still gets memory, a file and bytes in files after another namespace
// has taken all it can get.
func TestNamespacesShareRoom(t *testing.T) {
	long := make([]byte, 256<<10)
	for name, c := range map[string]struct {
		scarce *budget.Budget
		limit  int64
		// got reports whether the body got the limited resource.
		got func(b *body) bool
	}{
		"memory": {bodyMemory(), 16 * maxInMemory,
			func(b *body) bool { return len(b.buffer.Bytes()) > maxInMemory }},
		"descriptors":    {bodyFiles.budget(), 16, func(b *body) bool { return b.file != nil }},
		"bytes of files": {fileBytes, 16 * int64(len(long)), func(b *body) bool { return b.rest == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			withLimit(t, bodyMemory(), 16*maxInMemory)
			withLimit(t, c.scarce, c.limit)
			take := func(namespace string) bool {
				r := bodyOf(long)
				r.Backend = balancer.New(namespace + "/web/80")
				if err := r.readBody(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(r.body.close)
				return c.got(r.body)
			}
			n := 0
			for ; take("shop"); n++ {
				if n > 16 {
					t.Fatal("one namespace has no limit")
				}
			}
			if n < 8 || !take("other") {
				t.Errorf("after %d bodies of one namespace, another namespace gets nothing", n)
			}
		})
	}
}

// TestFastCGIWithoutRoom checks that a FastCGI request with a body of unknown length gets 503 and is counted if there
// is no room to buffer the body.
func TestFastCGIWithoutRoom(t *testing.T) {
	withoutRoom(t, bodyFiles.budget())
	refused := unmeasured.Load()
	r := bodyOf(make([]byte, 2<<20))
	r.settings.Protocol = ir.FastCGI
	err := r.readBody()
	if r.body.close(); exchange.StatusOf(err) != http.StatusServiceUnavailable || unmeasured.Load() != refused+1 {
		t.Errorf("the error is %v, and %d requests are counted", err, unmeasured.Load()-refused)
	}
}

// TestCallsHaveDescriptorsOfTheirOwn checks the budget of calls. The Ingresses of one namespace call a silent service
// with all connections that they get. Another namespace must still get a connection, no connection to an endpoint is
// used, and a dispensable call leaves half of the connections.
func TestCallsHaveDescriptorsOfTheirOwn(t *testing.T) {
	const limit = 16
	withLimit(t, calls.budget(), limit)
	withoutRoom(t, endpoints.budget())
	asked := make(chan struct{}, 2*limit)
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 1<<10))
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, conn)
	})
	p := NewServicePool(loopbackGuard())
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait(); p.Close() })
	// call returns false if the call gets no connection. Otherwise it waits for the response until the test ends.
	call := func(namespace string, dispensable bool) bool {
		ended := make(chan error, 1)
		running.Go(func() {
			r := &message.Request{}
			r.SetContext(ctx)
			const patience = fixture.Patience
			_, err := p.Call(r, &callout.Call{
				Service: &callout.Service{
					Connect: patience, Read: patience, Write: patience, Dispensable: dispensable,
				},
				Namespace: namespace, Address: listener.Addr().String(),
				Host: "auth.example", Method: http.MethodGet, Target: "/",
			})
			ended <- err
		})
		select {
		case err := <-ended:
			if !errors.Is(err, callout.ErrBusy) {
				t.Fatal(err)
			}
			return false
		case <-asked:
			return true
		case <-time.After(fixture.Patience):
			t.Fatal("a call is neither refused nor made")
		}
		return false
	}
	count := func(dispensable bool) (n int) {
		for call("shop", dispensable) {
			n++
		}
		return n
	}
	refused := calls.refused.Load()
	if n := count(true); n != limit/2 {
		t.Errorf("%d calls of %d can be dropped, want half", n, limit)
	}
	if n := count(false); n == 0 || !call("other", false) {
		t.Errorf("after %d more calls of one namespace, another namespace gets no connection", n)
	}
	if got := calls.refused.Load() - refused; got != 2 {
		t.Errorf("%d refused calls are counted, want 2", got)
	}
}

// TestUploadsWithoutRoomLeaveConnections checks that clients that send only half of a body that cannot be buffered get
// at most half of the connections to endpoints, including idle ones, and otherwise 503. Other requests of the namespace
// must succeed.
func TestUploadsWithoutRoomLeaveConnections(t *testing.T) {
	const limit = 16
	withLimit(t, endpoints.budget(), limit)
	withoutRoom(t, bodyMemory())
	withoutRoom(t, bodyFiles.budget())
	asked := make(chan string, 4*limit)
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) { answerGets(conn, asked) })
	p := NewPool(loopbackGuard())
	forward := forwarding(t, p, listener.Addr().String())
	honest := func() {
		t.Helper()
		if err := forward(t.Context(), http.MethodGet, nil); err != nil {
			t.Fatalf("an honest request fails: %v", err)
		}
		fixture.Receive(t, "an honest request", asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var clients []*io.PipeWriter
	t.Cleanup(func() {
		cancel()
		for _, client := range clients {
			_ = client.Close()
		}
		running.Wait()
		p.Close()
	})
	held := 0
	for range 2 * limit {
		// This leaves an idle connection.
		honest()
		body, client := io.Pipe()
		clients = append(clients, client)
		ended := make(chan error, 1)
		running.Go(func() {
			ended <- forward(ctx, http.MethodPost, io.MultiReader(bytes.NewReader(make([]byte, 8<<10)), body))
		})
		select {
		case err := <-ended:
			if exchange.StatusOf(err) != http.StatusServiceUnavailable {
				t.Fatal(err)
			}
		case <-asked:
			held++
		case <-time.After(fixture.Patience):
			t.Fatal("an upload is neither refused nor sent to the endpoint")
		}
	}
	if honest(); held > limit/2 || held < limit/4 {
		t.Errorf("uploads without room have %d of %d connections", held, limit)
	}
}

// forwarding returns a function that forwards a request to the endpoint at address. The request declares a longer body
// than it sends.
func forwarding(t *testing.T, p *Pool, address string) func(context.Context, string, io.Reader) error {
	t.Helper()
	backend := balancer.New("shop/web/80")
	backend.SetEndpoints([]ir.Endpoint{{Address: address}})
	settings, err := NewSettings(ir.Proxy{}.WithDefaults())
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, method string, body io.Reader) error {
		r := &message.Request{
			Method: method, Host: "shop.example", Target: "/", Path: "/", EscapedPath: "/", Major: 1, Minor: 1,
			Length: 1 << 20, Body: body, Conn: &message.Conn{RemoteIP: "192.0.2.1", LocalPort: "80"},
		}
		r.SetContext(ctx)
		return p.Forward(&exchange.Exchange{
			Request: r, Route: &exchange.Route{Path: "/"}, Backend: backend, Clients: realip.New(ir.Clients{}),
			Global: &ir.Global{}, Writer: ignoring{},
		}, settings, nil)
	}
}

// answerGets responds to each GET on a connection and reads the body of each other request. It sends the methods to
// asked.
func answerGets(conn net.Conn, asked chan<- string) {
	for in := bufio.NewReader(conn); ; {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		asked <- r.Method
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

// ignoring is a client that accepts all responses.
type ignoring struct{ message.Writer }

func (ignoring) Head(*message.Response) error { return nil }
func (ignoring) Flush() error                 { return nil }
func (ignoring) Started() bool                { return false }
func (ignoring) EndBody()                     {}
func (ignoring) Abort()                       {}

func loopbackGuard() *reach.Guard {
	guard := reach.NewGuard()
	guard.Configure(reach.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return guard
}
