package live_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const patience = fixture.Patience

func init() { caddy.RegisterModule(endless{}) }

// endless is a handler that returns when the request is canceled, like an upgraded connection.
type endless struct{}

func (endless) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_endless", New: func() caddy.Module { return new(endless) }}
}

func (endless) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return err
	}
	<-r.Context().Done()
	return nil
}

func endlessRoute(path string) *document.Route {
	return &document.Route{Type: "prefix", Path: path, Destination: document.Destination{
		Chain: json.RawMessage(`[{"handle":[{"handler":"test_endless"}]}]`),
	}}
}

// open starts a request, and returns a channel that is closed when it has ended.
func open(t *testing.T, table *live.Table, path string, header http.Header) <-chan struct{} {
	t.Helper()
	return openBy(t, table, path, header, nil)
}

// openBy works like open, for a connection over TLS.
func openBy(t *testing.T, table *live.Table, path string, header http.Header, by *tls.ConnectionState) <-chan struct{} {
	t.Helper()
	begun, ended := make(chan struct{}), make(chan struct{})
	w := &recorder{ResponseWriter: httptest.NewRecorder(), begun: begun}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://shop.example"+path, nil)
	r.Header, r.TLS = header, by
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, &caddyhttp.Server{})
	go func() {
		defer close(ended)
		if outcome, err := serve(table, w, r); outcome != live.Served || err != nil {
			t.Errorf("outcome %v, error %v", outcome, err)
		}
	}()
	await(t, begun, "the stream does not begin")
	return ended
}

// recorder closes begun when the response starts.
type recorder struct {
	http.ResponseWriter
	begun chan struct{}
}

func (r *recorder) WriteHeader(status int) {
	r.ResponseWriter.WriteHeader(status)
	close(r.begun)
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func await(t *testing.T, event <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(patience):
		t.Fatal(otherwise)
	}
}

func update(t *testing.T, table *live.Table, h *document.Host) {
	t.Helper()
	table.Update(map[string]*document.Host{"shop.example": h})
	if refused := table.Refused(); len(refused) > 0 {
		t.Fatal(refused)
	}
}

// TestStreamsGoWithTheirRoute checks that a stream survives changes of its host, and ends some time after its route is
// removed.
func TestStreamsGoWithTheirRoute(t *testing.T) {
	table := newTable(t)
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	update(t, table, hostOf(endlessRoute("/"), endlessRoute("/gone")))
	upgrade := http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}}
	stays, goes := open(t, table, "/", upgrade), open(t, table, "/gone", http.Header{"Accept": {"text/event-stream"}})

	update(t, table, hostOf(endlessRoute("/"), route("prefix", "/new", "new")))
	await(t, goes, "the stream of a route that has gone goes on")
	select {
	case <-stays:
		t.Fatal("the stream of a route that is still there has ended")
	default:
	}

	update(t, table, nil)
	await(t, stays, "the stream of a host that has gone goes on")
}

func TestOrdinaryRequestsAreNotCut(t *testing.T) {
	table := newTable(t)
	table.SetGlobal(&ir.Global{Drain: time.Nanosecond})
	update(t, table, hostOf(endlessRoute("/"), endlessRoute("/long")))
	long := open(t, table, "/long", http.Header{})
	stream := open(t, table, "/long", http.Header{"Upgrade": {"x"}})
	update(t, table, nil)
	await(t, stream, "the stream goes on")
	select {
	case <-long:
		t.Error("a request that is under way was cut")
	default:
	}
}

// TestAwaitStreams checks that AwaitStreams waits for streams, including those of removed routes, and for nothing else.
func TestAwaitStreams(t *testing.T) {
	table := newTable(t)
	update(t, table, hostOf(endlessRoute("/")))
	table.AwaitStreams(t.Context())
	end, stop := context.WithCancel(t.Context())
	open(t, table, "/", http.Header{"Upgrade": {"websocket"}})
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		table.AwaitStreams(t.Context())
	}()
	stop()
	table.AwaitStreams(end)
	select {
	case <-waiting:
		t.Fatal("the stream is not waited for")
	default:
	}
	table.SetGlobal(&ir.Global{Drain: time.Millisecond})
	update(t, table, nil)
	await(t, waiting, "the stream is waited for after its end")
}
