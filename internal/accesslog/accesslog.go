// Package accesslog writes a line for each request, and for each connection of a TCP or UDP port, in the formats of nginx. A line never
// holds up a request: what the file does not take in time is dropped, and counted.
package accesslog

import (
	"cmp"
	"slices"
	"time"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/pattern"
)

// Log is a format, a file, and what is left out. It is immutable.
type Log struct {
	format *format[entry]
	to     *File
	// unknown says that requests for hosts that nobody has get a line, too.
	unknown bool
	skip    map[string]bool
	skipAny []*pattern.Pattern
}

// New returns the log that settings ask for; nil is none. Entries of Skip that are no patterns are left out, which skips less.
func New(of *ir.AccessLog, files *Files) *Log {
	if of.Off {
		return nil
	}
	l := &Log{
		format: newFormat(cmp.Or(of.Format, DefaultFormat), of.Escape, valueOf), to: files.Open(of.Path), unknown: of.Unknown,
		skip: map[string]bool{},
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

// Note writes the line of a request that has been answered. l may be nil. known says whether somebody has its host.
func (l *Log) Note(x *exchange.Exchange, began time.Time, known bool) {
	if l == nil || !known && !l.unknown || x.Route != nil && x.Route.Unlogged || l.skips(x.Target) {
		return
	}
	now := time.Now()
	l.format.write(&entry{Exchange: x, now: now, took: now.Sub(began)}, l.to)
}

func (l *Log) skips(target string) bool {
	return l.skip[target] || slices.ContainsFunc(l.skipAny, func(p *pattern.Pattern) bool { return p.Find(target) })
}
