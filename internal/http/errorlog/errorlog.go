// Package errorlog writes one line to Caddy's log for each error response that the controller itself makes. The line
// has the request ID that the body of the response contains, the Ingress, and the reason.
package errorlog

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/k8singress/k8singress/internal/http/exchange"
)

// maxLogged is the maximum length, in bytes, of a client's or endpoint's string in a log field. Longer strings are
// truncated.
const maxLogged = 512

// Log writes the lines to a logger. It may be copied.
type Log struct {
	logger *zap.Logger
	recent *recentLines
}

// New returns a Log for the logger. All Logs of the process share the limits of lines.
func New(logger *zap.Logger) Log { return Log{logger, &recent} }

// kind describes a kind of lines.
type kind struct {
	message string
	level   zapcore.Level
}

var (
	failed = kind{"a request failed", zap.ErrorLevel}
	hidden = kind{"a request failed, and the client got a substitute response", zap.ErrorLevel}
	cutOff = kind{"a response was cut off", zap.WarnLevel}
	// A client or the configuration causes these errors. nginx has most of them in its error log, which it writes in
	// the default configuration.
	rejected       = kind{"a request was rejected", zap.InfoLevel}
	rejectedHidden = kind{"a request was rejected, and the client got a substitute response", zap.InfoLevel}
)

// Failed logs the error of a request before the client gets the error response.
func (l Log) Failed(x *exchange.Exchange, err error) {
	k := rejected
	if isFailure(err) || isFailure(x.Hidden) {
		k = failed
	}
	if x.Hidden != nil {
		// The request failed a second time, without its substitute response.
		err = exchange.Fail(exchange.StatusOf(err), fmt.Errorf("%w; before: %w", err, x.Hidden))
	}
	l.write(x, k, err)
}

// CutOff logs the error of a request whose response is incomplete.
func (l Log) CutOff(x *exchange.Exchange, err error) { l.write(x, cutOff, err) }

// Answered must be called when a request has got a response and no error is left. It logs the error that the controller
// has responded with, or for which the client got an error page.
func (l Log) Answered(x *exchange.Exchange) {
	switch {
	case x.Hidden != nil && isFailure(x.Hidden):
		l.write(x, hidden, x.Hidden)
	case x.Hidden != nil:
		l.write(x, rejectedHidden, x.Hidden)
	case x.Refused != nil:
		l.write(x, rejected, x.Refused)
	}
}

// isFailure reports whether an error, which may be nil, is the fault of the controller, an endpoint or a service. All
// other requests were rejected.
func isFailure(err error) bool {
	return err != nil && exchange.StatusOf(err) >= http.StatusInternalServerError &&
		!errors.Is(err, exchange.ErrRejected)
}

// write writes a line about an error, unless the level is off or there are too many similar lines.
func (l Log) write(x *exchange.Exchange, k kind, err error) {
	if !l.logger.Core().Enabled(k.level) {
		return
	}
	status := exchange.StatusOf(err)
	if status == exchange.ClientGone || k.level > zap.InfoLevel && x.Context().Err() != nil {
		// The client has disconnected, which is not an error of the controller or the endpoint.
		k.level = zap.DebugLevel
		if !l.logger.Core().Enabled(k.level) {
			return
		}
	}
	served := x.Served()
	of := topic{kind: k, status: status}
	if served.Route != nil {
		of.origin = served.Route.Origin
	}
	client := x.ClientIP()
	if !l.recent.take(l.logger, of, client) {
		return
	}
	// The logger samples the entries that it checks, so check only entries to be written.
	entry := l.logger.Check(k.level, k.message)
	if entry == nil {
		return
	}
	object := served.Ingress()
	// The query may contain secrets, such as tokens.
	path, _, _ := strings.Cut(x.Target, "?")
	entry.Write(zap.String("request_id", x.ID()), zap.Int("status", status),
		zap.String("reason", Shortened(err.Error())),
		zap.String("namespace", object.Namespace), zap.String("ingress", object.Name),
		zap.String("client", Shortened(client)), zap.String("method", Shortened(x.Method)),
		zap.String("host", Shortened(x.Host)), zap.String("path", Shortened(path)))
}

// Connection logs a failure of a connection, at most once per second for each message.
func (l Log) Connection(level zapcore.Level, message string, fields ...zap.Field) {
	if !l.logger.Core().Enabled(level) || !l.recent.once(l.logger, topic{kind: kind{message, level}}) {
		return
	}
	l.logger.Log(level, message, fields...)
}

// Shortened truncates a string of a client or an endpoint that is too long for a log field.
func Shortened(text string) string {
	if len(text) > maxLogged {
		return text[:maxLogged] + "..."
	}
	return text
}
