// Package accesslog writes one line for each HTTP request, and one for each connection to a TCP or UDP port, in nginx's
// log formats. Requests never wait for the log: lines that cannot be written in time are dropped and counted.
package accesslog

import (
	"cmp"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// Log writes access log lines in one format to one file. It is immutable.
type Log struct {
	format *format[entry]
	to     *File
	// unknown is true if requests for hosts that are not in any Ingress are also logged.
	unknown bool
	skip    map[string]bool
	skipAny []*pattern.Pattern
}

// New returns the access log for the given settings, or nil if the access log is disabled. Requests that match an
// element of the setting Skip are not logged; an element that is an invalid regular expression is ignored.
func New(of *ir.AccessLog, files *Files) *Log {
	if of.Off {
		return nil
	}
	l := &Log{
		format: newFormat(cmp.Or(of.Format, DefaultFormat), of.Escape, valueOf), to: files.Open(of.Path),
		unknown: of.Unknown,
		skip:    map[string]bool{},
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

// Record logs a request after its response has ended. known is true if an Ingress defines the host of the request. If l
// is nil, Record does nothing.
func (l *Log) Record(x *exchange.Exchange, began time.Time, known bool) {
	if l == nil || !known && !l.unknown || x.Unlogged || x.Route != nil && x.Route.Unlogged || l.skips(x.Target) {
		return
	}
	now := time.Now()
	l.format.write(&entry{Exchange: x, now: now, took: now.Sub(began)}, l.to)
}

func (l *Log) skips(target string) bool {
	return l.skip[target] || slices.ContainsFunc(l.skipAny, func(p *pattern.Pattern) bool { return p.Find(target) })
}
