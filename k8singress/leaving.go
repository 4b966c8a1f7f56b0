package k8singress

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// The end of the process: SIGTERM makes caddy.Exiting true. From then on answers ask their clients to leave. Caddy stops its
// apps one after the other, in any order. The http app takes new requests for shutdown_delay, closes its listeners, and
// waits for requests under way until grace_period is over. Connections that were upgraded are no requests to it, so we wait
// for those, for the rest of that time. Doing so in App.Stop would keep the http app from closing its listeners where ours
// is stopped first; so it is done after all of them have been.

// leaving is what the end of the process has come to.
var leaving struct {
	once sync.Once
	// app is the one that has been stopped because of it.
	app atomic.Pointer[App]
	// since is when the first HTTP server closed its listeners, in nanoseconds since 1970.
	since atomic.Int64
}

// awaitStreamsOnExit makes Caddy wait for streams before it ends. It may be called for each configuration.
func awaitStreamsOnExit() { leaving.once.Do(func() { caddy.OnExit(awaitStreams) }) }

func awaitStreams(ctx context.Context) {
	app := leaving.app.Load()
	if app == nil {
		return
	}
	// Where no server has noted it yet, it is now.
	leaving.since.CompareAndSwap(0, time.Now().UnixNano())
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, leaving.since.Load()).Add(time.Duration(app.ShutdownTimeout)))
	defer cancel()
	app.engine.Table().AwaitStreams(ctx)
}

// noteShutdown notes when the server that ctx belongs to closes its listeners.
func noteShutdown(ctx caddy.Context) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return
	}
	server.RegisterOnShutdown(func() {
		if caddy.Exiting() {
			leaving.since.CompareAndSwap(0, time.Now().UnixNano())
		}
	})
}

// sendAway asks the client for another connection for its next request. Go's HTTP/2 makes a GOAWAY of the header. HTTP/3
// has none; there Caddy sends a GOAWAY when it closes the listener. Upgrades need the header themselves.
func sendAway(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 3 && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
}

// unending is longer than any request.
const unending = 100 * 365 * 24 * time.Hour

// allowSilence lets the body of a request pause for as long as it likes, if it is one half of a stream in both directions:
// a client that listens has nothing to say. Those of gRPC and of Connect can be told from their type.
func allowSilence(r *http.Request) (restore func()) {
	body, _ := caddyhttp.IdleTimeoutsFromContext(r.Context())
	kind := r.Header.Get("Content-Type")
	if body == nil || !strings.HasPrefix(kind, "application/grpc") && !strings.HasPrefix(kind, "application/connect+") {
		return func() {}
	}
	return body.Override(unending, 0)
}
