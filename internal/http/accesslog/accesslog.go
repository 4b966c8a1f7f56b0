// Package accesslog writes one line for each HTTP request, and one for each connection to a TCP or UDP port, in nginx's
// log formats. Requests never wait for the log: lines that cannot be written in time are dropped and counted.
package accesslog

import (
	"cmp"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// Output writes the lines of an access log in a format that is not nginx's. It is safe for concurrent use.
type Output interface {
	// Watch is called with each request before it is served, and with the Writer for its response. It returns the
	// Writer to use instead, and may replace the body of the request.
	Watch(w message.Writer, r *message.Request) message.Writer
	// Record writes the line of a request that has taken a time. It is also called for requests that must not be
	// logged, with skipped.
	Record(x *exchange.Exchange, took time.Duration, skipped bool)
}

// Log writes access log lines in one format to one file, or to an Output. It is immutable.
type Log struct {
	// format and to are only set if output is nil.
	format *format[entry]
	to     *File
	output Output
	// unknown is true if requests for hosts that are not in any Ingress are also logged.
	unknown bool
	skip    map[string]bool
	skipAny []*pattern.Pattern
}

// New returns the access log for the given settings, or nil if the access log is disabled. Requests that match an
// element of the setting Skip are not logged; an element that is an invalid regular expression is ignored. If output is
// not nil, it gets the lines, and the format and the path in the settings have no effect.
func New(of *ir.AccessLog, files *Files, output Output) *Log {
	if of.Off {
		return nil
	}
	l := &Log{output: output, unknown: of.Unknown, skip: map[string]bool{}}
	if output == nil {
		l.format, l.to = newFormat(cmp.Or(of.Format, DefaultFormat), of.Escape, valueOf), files.Open(of.Path)
	}
	for _, text := range of.Skip {
		if p, marked, err := pattern.CompileMarked(text); !marked {
			l.skip[text] = true
		} else if err == nil {
			l.skipAny = append(l.skipAny, p)
		}
	}
	return l
}

// Record logs a request that has ended at the time now, after the time took. known is true if an Ingress defines the
// host of the request. If l is nil, Record does nothing.
func (l *Log) Record(x *exchange.Exchange, now time.Time, took time.Duration, known bool) {
	if l == nil {
		return
	}
	skipped := !known && !l.unknown || x.Unlogged || x.Route != nil && x.Route.Unlogged || l.skips(x.Target)
	switch {
	case l.output != nil:
		l.output.Record(x, took, skipped)
	case !skipped:
		l.format.write(&entry{Exchange: x, now: now, took: took}, l.to)
	}
}

// Watch must be called with each request before it is served. It returns the Writer to use for the response, and may
// replace the body of the request. It returns w if the lines have nginx's format, or if l is nil.
func (l *Log) Watch(w message.Writer, r *message.Request) message.Writer {
	if l == nil || l.output == nil {
		return w
	}
	return l.output.Watch(w, r)
}

func (l *Log) skips(target string) bool {
	return l.skip[target] || slices.ContainsFunc(l.skipAny, func(p *pattern.Pattern) bool { return p.Find(target) })
}
