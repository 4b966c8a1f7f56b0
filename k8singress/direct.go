package k8singress

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/live"
	"github.com/k8singress/k8singress/internal/message"
)

// direct answers the requests of a server that does nothing but what Ingresses say, without Caddy's part of each request.
type direct struct {
	table  *live.Table
	server *caddyhttp.Server
	log    *zap.Logger
	// altSvc tells clients over TLS of HTTP/3; nil is without it.
	altSvc *message.Changes
}

// newDirect returns nil for a server that does more, or that is asked for more: requests for it are Caddy's. It is called before Caddy
// has read the routes of the server.
func newDirect(server *caddyhttp.Server, table *live.Table) *direct {
	if !onlyIngresses(server) {
		return nil
	}
	return &direct{table: table, server: server, log: caddy.Log().Named("k8singress.http"), altSvc: altSvcOf(server)}
}

func onlyIngresses(server *caddyhttp.Server) bool {
	if server.Logs != nil || server.Errors != nil || len(server.NamedRoutes) > 0 || len(server.Routes) != 1 {
		return false
	}
	route := server.Routes[0]
	if len(route.MatcherSetsRaw) > 0 || len(route.HandlersRaw) != 1 || server.StrictSNIHost != nil && *server.StrictSNIHost {
		return false
	}
	var handler struct {
		Handler  string `json:"handler"`
		PassThru bool   `json:"pass_thru"`
	}
	err := json.Unmarshal(route.HandlersRaw[0], &handler)
	return err == nil && handler.Handler == "k8singress" && !handler.PassThru
}

// altSvcOf says what Caddy says of a server with HTTP/3 (RFC 9114 3.1.1).
func altSvcOf(server *caddyhttp.Server) *message.Changes {
	if len(server.TLSConnPolicies) == 0 || len(server.Protocols) > 0 && !slices.Contains(server.Protocols, "h3") {
		return nil
	}
	var all []string
	for _, listen := range server.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && !address.IsUnixNetwork() {
			_, port, _ := net.SplitHostPort(address.JoinHostPort(0))
			all = append(all, `h3=":`+port+`"; ma=2592000`)
		}
	}
	if all == nil {
		return nil
	}
	slices.Sort(all)
	return &message.Changes{Set: []message.Field{message.AltSvc.Field(strings.Join(slices.Compact(all), ","))}}
}

// wellKnown is where authorities look for the answers to challenges that Caddy knows.
const wellKnown = "/.well-known/"

var exchanges = sync.Pool{New: func() any { return new(exchange.Exchange) }}

// answer answers one request.
func (d *direct) answer(w message.Writer, r *message.Request) {
	if strings.HasPrefix(r.Path, wellKnown) {
		byCaddy(d.server, w, r)
		return
	}
	began := time.Now()
	x := exchanges.Get().(*exchange.Exchange)
	*x = exchange.Exchange{Request: r, Writer: w, Prepare: d.prepare, Always: d.table.Always(r.TLS() != nil), Leave: caddy.Exiting()}
	if d.altSvc != nil && r.TLS() != nil {
		x.ChangeAnswer(d.altSvc)
	}
	outcome, err := serve(d.table, x)
	if outcome == live.NoHost {
		_ = x.Respond(http.StatusNotFound, "") // Who has gone is not waited for.
	} else if err != nil {
		d.fail(x, outcome, err)
	}
	requests.note(x.Status, began)
	if !x.Kept {
		*x = exchange.Exchange{}
		exchanges.Put(x)
	}
}

// fail answers a request that has failed, and notes why.
func (d *direct) fail(x *exchange.Exchange, outcome live.Outcome, err error) {
	if errors.Is(err, exchange.ErrCut) || x.Writer.Started() {
		d.note(zap.WarnLevel, x, "an answer is cut off", err)
		x.Writer.Abort()
		return
	}
	status, fields := exchange.StatusOf(err), []message.Field(nil)
	if outcome == live.NotReady {
		fields = []message.Field{message.NewField("Retry-After", retryAfter)}
	}
	if status >= http.StatusInternalServerError {
		d.note(zap.ErrorLevel, x, "a request failed", err)
	}
	// An error is the client's, who has gone.
	_ = x.Refuse(status, fields...)
}

func (d *direct) note(level zapcore.Level, x *exchange.Exchange, what string, err error) {
	if x.Context().Err() != nil {
		// The client has gone.
		level = zap.DebugLevel
	}
	if entry := d.log.Check(level, what); entry != nil {
		entry.Write(zap.String("host", x.Host), zap.String("method", x.Method), zap.String("uri", x.Target),
			zap.Int("status", exchange.StatusOf(err)), zap.Error(err))
	}
}

// prepare makes a request one that Caddy's handlers can serve, as Caddy's servers do.
func (d *direct) prepare(w http.ResponseWriter, r *http.Request) *http.Request {
	return caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, d.server)
}

// byCaddy has a server of Caddy answer.
func byCaddy(server *caddyhttp.Server, w message.Writer, r *message.Request) {
	answer := message.NewResponseWriter(w, w.Head)
	server.ServeHTTP(answer, r.ToHTTP())
	// Who has gone is not waited for.
	_ = answer.Finish()
}
