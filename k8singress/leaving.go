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

// This is how the process shuts down. After SIGTERM, caddy.Exiting returns true, and from then on responses ask clients
// to close the connection. Caddy stops its apps one after the other, in no particular order. The http app accepts new
// requests during shutdown_delay. Then it closes its listeners, including the sockets of package front, and waits for
// requests in progress, for at most grace_period.
//
// The http app waits neither for upgraded connections nor for connections to TCP ports. awaitStreams waits for both,
// for the rest of grace_period. It runs after all apps have stopped. App.Stop must not wait for them: if Caddy stopped
// our app first, the http app could not close its listeners in the meantime. TCP ports accept connections for as long
// as the http app accepts requests.

// leaving is the state of the process's shutdown.
var leaving struct {
	once sync.Once
	// app is the k8singress app that was stopped because the process is exiting. It is nil before that.
	app atomic.Pointer[App]
	// stopped is when the app was stopped. since is when the first HTTP server closed its listeners. Both are in
	// nanoseconds since 1970. Zero means that this has not happened yet.
	stopped, since atomic.Int64
}

// awaitStreamsOnExit registers awaitStreams with Caddy, so that Caddy waits for upgraded connections and connections to
// TCP ports before it exits. It may be called more than once.
func awaitStreamsOnExit() { leaving.once.Do(func() { caddy.OnExit(awaitStreams) }) }

func awaitStreams(ctx context.Context) {
	app := leaving.app.Load()
	if app == nil {
		return
	}
	if leaving.since.Load() == 0 {
		// Without an HTTP server, Caddy has not waited for shutdown_delay, so wait here.
		awaitTime(ctx, time.Unix(0, leaving.stopped.Load()).Add(time.Duration(app.config.ShutdownDelay)))
	}
	leaving.since.CompareAndSwap(0, time.Now().UnixNano())
	timeout := time.Duration(app.config.ShutdownTimeout)
	ctx, cancel := context.WithDeadline(ctx, time.Unix(0, leaving.since.Load()).Add(timeout))
	defer cancel()
	var under panics.Group
	under.Go("k8singress/streams", func() { app.engine.Table().AwaitStreams(ctx) })
	under.Go("k8singress/ports", func() { app.engine.Ports().Drain(ctx) })
	under.Wait()
	select {
	case <-app.Ended():
	case <-time.After(maxEnd):
	}
	// Write the access log lines of connections that have just ended.
	app.engine.Table().AccessLogs().Flush()
}

// maxEnd is the maximum time to wait until the engine has stopped and has sent its last access log lines and spans.
const maxEnd = 3 * time.Second

// Ended returns a channel that is closed when the engine of the app has stopped completely.
func (a *App) Ended() <-chan struct{} { return a.engine.Done() }

func awaitTime(ctx context.Context, t time.Time) {
	select {
	case <-time.After(time.Until(t)):
	case <-ctx.Done():
	}
}

// recordShutdown registers a function with the server that ctx belongs to. When the server closes its listeners because
// the process is exiting, the function sets leaving.since to the current time and closes the TCP and UDP ports.
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

// sendAway adds the header Connection: close to a response, so that the client uses another connection for its next
// request. Go's HTTP/2 server sends a GOAWAY frame instead of the header. HTTP/3 does not support the header; HTTP/3
// connections get a GOAWAY frame when their listener is closed. Responses to upgrade requests are not changed, because
// they need the Connection header themselves.
func sendAway(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 3 && r.Header["Upgrade"] == nil {
		w.Header().Set("Connection", "close")
	}
}
