package k8singress

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/panics"
)

// The end of the process: SIGTERM makes caddy.Exiting true. From then on answers ask their clients to leave. Caddy stops
// its apps one after the other, in any order. The http app takes new requests for shutdown_delay, closes its listeners,
// whose sockets package front closes then, and waits with it for requests under way until grace_period is over.
// Connections that were upgraded are no requests to it, and those of TCP ports, which take new ones for as long as it
// does, are none of its; so we wait for these, for the rest of that time. Doing so in App.Stop would keep the http app
// from closing its listeners where ours is stopped first; so it is done after all of them have been.

// leaving is what the end of the process has come to.
var leaving struct {
	once sync.Once
	// app is the one that has been stopped because of it.
	app atomic.Pointer[App]
	// stopped is when that was, and since when the first HTTP server closed its listeners, in nanoseconds since 1970.
	stopped, since atomic.Int64
}

// awaitStreamsOnExit makes Caddy wait for streams before it ends. It may be called for each configuration.
func awaitStreamsOnExit() { leaving.once.Do(func() { caddy.OnExit(awaitStreams) }) }

func awaitStreams(ctx context.Context) {
	app := leaving.app.Load()
	if app == nil {
		return
	}
	if leaving.since.Load() == 0 {
		// Without an HTTP server, nobody has waited for shutdown_delay.
		awaitTime(ctx, time.Unix(0, leaving.stopped.Load()).Add(time.Duration(app.ShutdownDelay)))
	}
	leaving.since.CompareAndSwap(0, time.Now().UnixNano())
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, leaving.since.Load()).Add(time.Duration(app.ShutdownTimeout)))
	defer cancel()
	var under panics.Group
	under.Go("k8singress/streams", func() { app.engine.Table().AwaitStreams(ctx) })
	under.Go("k8singress/ports", func() { app.engine.Ports().Drain(ctx) })
	under.Wait()
	select {
	case <-app.Ended():
	case <-time.After(mostEnd):
	}
	// The connections that have ended just now have lines, too.
	app.engine.Table().AccessLogs().Flush()
}

// mostEnd is how long the process waits for what is written at the very end: lines of the access log, and spans.
const mostEnd = 3 * time.Second

// Ended is closed when everything has ended that the last configuration with these options has used.
func (a *App) Ended() <-chan struct{} { return a.engine.Done() }

func awaitTime(ctx context.Context, t time.Time) {
	select {
	case <-time.After(time.Until(t)):
	case <-ctx.Done():
	}
}

// noteShutdown notes when the server that ctx belongs to closes its listeners, and has the TCP and UDP ports do the same.
func noteShutdown(ctx caddy.Context, app *App) {
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok {
		return
	}
	server.RegisterOnShutdown(func() {
		if caddy.Exiting() {
			leaving.since.CompareAndSwap(0, time.Now().UnixNano())
			app.engine.Ports().Outlast()
			app.engine.Ports().Refuse()
		}
	})
}

// sendAway asks the client for another connection for its next request. Go's HTTP/2 makes a GOAWAY of the header. HTTP/3
// has none; there package front sends a GOAWAY, or Caddy when it closes a listener of its own. Upgrades need the header themselves.
func sendAway(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 3 && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
}
