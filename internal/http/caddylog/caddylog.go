// Package caddylog writes the access log of HTTP requests in Caddy's format, to Caddy's logs.
package caddylog

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/process/logs"
)

// Settings are the settings of the access log in Caddy's format.
type Settings struct {
	// Credentials logs header fields with credentials, such as Cookie and Authorization. Otherwise their values are
	// replaced by "REDACTED", as in Caddy.
	Credentials bool
}

// Log writes requests to Caddy's logger for access logs, with the fields that Caddy logs for the requests of sites, and
// with fields about the Ingress. It is immutable, and implements accesslog.Output.
type Log struct {
	log         *zap.Logger
	credentials bool
}

// New returns a Log. Its lines have no caller, since all of them come from the same line of code.
func New(of Settings) *Log {
	return &Log{logs.Logger("http.log.access").WithOptions(zap.WithCaller(false)), of.Credentials}
}

// Record logs a request that has taken a time, unless it is skipped. If the Caddy server of the request has an access
// log of its own, that log has a line for each request, whatever an Ingress says. Record then only adds its fields to
// the line. A request without a valid request line, such as a head that is incomplete or too large, is not logged:
// Caddy does not log it either, and the line would have no method, host and URI.
func (l *Log) Record(x *exchange.Exchange, took time.Duration, skipped bool) {
	ctx := x.CaddyContext
	switch {
	case LoggedByServer(ctx, x.Host):
		if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
			for _, field := range appendIngress(nil, x) {
				extra.Set(field)
			}
		}
	case !skipped && x.Target != "":
		l.write(ctx, x, took)
	}
}

// LoggedByServer reports whether the Caddy server that handles a request writes a line for it to its own access log, as
// the server itself decides. ctx is the context of the request, or nil. host is the requested host. Caddy has no public
// function for it, so this is the decision of Server.shouldLogRequest in modules/caddyhttp/server.go of Caddy v2.11.9.
func LoggedByServer(ctx context.Context, host string) bool {
	if ctx == nil {
		return false
	}
	server, ok := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if !ok || server.Logs == nil {
		return false
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	for name := range server.Logs.LoggerNames {
		if certmagic.MatchWildcard(host, name) {
			return true
		}
	}
	for _, name := range server.Logs.SkipHosts {
		if certmagic.MatchWildcard(host, name) {
			return false
		}
	}
	return !server.Logs.SkipUnmappedHosts
}

// write writes a line for a request. ctx is the context of the Caddy handlers that have handled it, or nil.
func (l *Log) write(ctx context.Context, x *exchange.Exchange, took time.Duration) {
	handled := handledBy(ctx)
	if handled.skips() {
		return
	}
	level := handled.level(statusOf(x))
	var fields []zapcore.Field
	write := func(log *zap.Logger) {
		entry := log.Check(level, "handled request")
		if entry == nil {
			return
		}
		if fields == nil {
			fields = append(l.fields(x, took, handled), handled.fields...)
		}
		entry.Write(fields...)
	}
	names, ok := handled.loggerNames()
	if !ok {
		write(l.log)
	}
	for _, name := range names {
		text, _ := name.(string)
		write(l.log.Named(text))
	}
}

// line holds the fields of a line. They are in one struct, so that a line needs few allocations. It is not reused for
// another line, because modules that receive log entries may keep it.
type line struct {
	fields   [7 + ofIngressFields]zapcore.Field
	request  loggedRequest
	response loggedFields
}

// fields returns the fields of a line, in Caddy's order.
func (l *Log) fields(x *exchange.Exchange, took time.Duration, handled handlers) []zapcore.Field {
	t := transcriptOf(x)
	n := &line{
		request:  loggedRequest{t, x.ClientIP(), l.credentials},
		response: loggedFields{t.response, l.credentials},
	}
	return appendIngress(append(n.fields[:0],
		zap.Object("request", &n.request),
		zap.Int64("bytes_read", received(x, t)),
		zap.String("user_id", cmp.Or(handled.user(), userOf(x))),
		zap.Duration("duration", took),
		zap.Int64("size", x.Sent()),
		zap.Int("status", statusOf(x)),
		zap.Object("resp_headers", &n.response)), x)
}

// received returns the number of bytes that were read from the client after the header fields: the body, or after an
// upgrade the bytes of the other protocol.
func received(x *exchange.Exchange, t *transcript) int64 {
	if x.Status == http.StatusSwitchingProtocols {
		return x.Received
	}
	return t.body.read()
}

func statusOf(x *exchange.Exchange) int { return cmp.Or(x.Status, exchange.ClientGone) }

// ofIngressFields is the number of fields that appendIngress appends.
const ofIngressFields = 5

// appendIngress appends the fields about the Ingress and the endpoint that have served a request.
func appendIngress(fields []zapcore.Field, x *exchange.Exchange) []zapcore.Field {
	served := x.Served()
	object := served.Ingress()
	return append(fields,
		zap.String("namespace", object.Namespace), zap.String("ingress", object.Name),
		zap.String("service", served.Service()), zap.String("endpoint", served.Address()),
		zap.String("request_id", x.ID()))
}

var userName = exchange.VariableOf("remote_user")

// userOf returns the user whose password a filter has verified, or an empty string.
func userOf(x *exchange.Exchange) string {
	if !x.Authenticated {
		return ""
	}
	return userName(x)
}

// handlers holds what the Caddy handlers of a chain say about the line for a request. The zero value is for a request
// without Caddy handlers.
type handlers struct {
	ctx    context.Context //nolint:containedctx // It is the context of a request that has ended.
	fields []zapcore.Field
}

func handledBy(ctx context.Context) handlers {
	if ctx == nil {
		return handlers{}
	}
	h := handlers{ctx: ctx}
	if extra, ok := ctx.Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		h.fields = caddyinternals.LogFields(extra)
	}
	return h
}

func (h handlers) variable(name string) any {
	if h.ctx == nil {
		return nil
	}
	return caddyhttp.GetVar(h.ctx, name)
}

// skips reports whether a handler has removed the request from the log (log_skip).
func (h handlers) skips() bool {
	skip, ok := h.variable(caddyhttp.LogSkipVar).(bool)
	return ok && skip
}

// level returns the level of the line (log_level).
func (h handlers) level(status int) zapcore.Level {
	if name, ok := h.variable(caddyhttp.LogLevelVar).(string); ok {
		level, err := zapcore.ParseLevel(name)
		if err == nil && level >= zapcore.DebugLevel && level <= zapcore.ErrorLevel {
			return level
		}
	}
	if status >= http.StatusInternalServerError {
		return zapcore.ErrorLevel
	}
	return zapcore.InfoLevel
}

// loggerNames returns the names of the loggers that get the line instead of the usual one (log_name). ok is false if no
// handler has set them.
func (h handlers) loggerNames() (names []any, ok bool) {
	names, ok = h.variable(caddyhttp.AccessLoggerNameVarKey).([]any)
	return names, ok
}

// user returns the user that a handler such as basic_auth has authenticated, or an empty string.
func (h handlers) user() string {
	if h.ctx == nil {
		return ""
	}
	replacer, ok := h.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	id, _ := replacer.GetString("http.auth.user.id")
	return id
}
