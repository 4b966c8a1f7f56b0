// Package accesslog writes a line for each HTTP request, and for each connection of a TCP or UDP port, in the formats
// of nginx. Requests never wait for the log: lines that the file does not accept in time are dropped and counted.
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
	// unknown also logs requests for unknown hosts.
	unknown bool
	skip    map[string]bool
	skipAny []*pattern.Pattern
}

// New returns the log for the settings. Nil means that nothing is logged. Invalid patterns in Skip are ignored, so
// fewer requests are skipped.
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

// Record logs a request after its response. l may be nil. known reports whether an Ingress owns the host of the
// request.
func (l *Log) Record(x *exchange.Exchange, began time.Time, known bool) {
	if l == nil || !known && !l.unknown || x.Route != nil && x.Route.Unlogged || l.skips(x.Target) {
		return
	}
	now := time.Now()
	l.format.write(&entry{Exchange: x, now: now, took: now.Sub(began)}, l.to)
}

func (l *Log) skips(target string) bool {
	return l.skip[target] || slices.ContainsFunc(l.skipAny, func(p *pattern.Pattern) bool { return p.Find(target) })
}
