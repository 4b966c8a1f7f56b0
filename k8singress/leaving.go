package k8singress

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/process/panics"
)

// The end of the process works as follows. After SIGTERM, caddy.Exiting returns true, and from then on responses ask
// their clients to close the connection. Caddy stops its apps one after the other, in any order. The http app accepts
// new requests for shutdown_delay. Then it closes its listeners, together with the sockets of package front, and waits
// up to grace_period for requests in progress.
//
// The http app does not wait for upgraded connections and for connections to TCP ports. TCP ports accept connections
// for as long as the http app accepts requests. awaitStreams waits for both kinds of connections, for the rest of
// grace_period. It runs after all apps have stopped: if App.Stop waited and our app were stopped first, the http app
// could not close its listeners.

// leaving is the state of the shutdown.
var leaving struct {
	once sync.Once
	// app is the app that was stopped because the process is exiting.
	app atomic.Pointer[App]
	// stopped is when the app was stopped. since is when the first HTTP server closed its listeners. Both are in
	// nanoseconds since 1970; zero means not yet.
	stopped, since atomic.Int64
}

// awaitStreamsOnExit makes Caddy wait for streams before it exits. It may be called for each configuration.
func awaitStreamsOnExit() { leaving.once.Do(func() { caddy.OnExit(awaitStreams) }) }

func awaitStreams(ctx context.Context) {
	app := leaving.app.Load()
	if app == nil {
		return
	}
	if leaving.since.Load() == 0 {
		// Without an HTTP server, shutdown_delay has not been waited for yet.
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
	case <-time.After(maxEnd):
	}
	// Connections that have just ended also have lines in the access log.
	app.engine.Table().AccessLogs().Flush()
}

// maxEnd is the maximum time to wait for the last writes: lines of the access log, and spans.
const maxEnd = 3 * time.Second

// Ended returns a channel that is closed when the engine has stopped completely.
func (a *App) Ended() <-chan struct{} { return a.engine.Done() }

func awaitTime(ctx context.Context, t time.Time) {
	select {
	case <-time.After(time.Until(t)):
	case <-ctx.Done():
	}
}

// recordShutdown records when the server that ctx belongs to closes its listeners, and closes the TCP and UDP ports at
// the same time.
func recordShutdown(ctx caddy.Context, app *App) {
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

// sendAway makes the client use another connection for its next request. Go's HTTP/2 server turns the header into a
// GOAWAY. HTTP/3 has no such header; package front sends a GOAWAY there, or Caddy does when it closes its own listener.
// Upgrade requests need the Connection header themselves.
func sendAway(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 3 && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
}
