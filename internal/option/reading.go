package option

import (
	"errors"
	"strings"

	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/report"
)

// Reading reads the values of one object into settings, and collects the problems with them.
type Reading[S any] struct {
	Settings *S
	Problems []report.Problem
	// Invalid is the reason of a problem with a value.
	Invalid report.Reason

	// counted are the options whose values count.
	counted []counted[S]
}

type counted[S any] struct {
	row   *Row[S, string]
	field string
}

// Read reads a value that stands in a field of the object. One that cannot be used is left out and reported.
func (r *Reading[S]) Read(row *Row[S, string], value, field string) {
	if row.Ignored != "" {
		return
	}
	if !row.Raw {
		if value = strings.TrimSpace(value); value == "" {
			return
		}
	}
	var err error
	if !row.Lines {
		err = checkText(value)
	}
	if err == nil {
		err = row.Parse(r.Settings, value)
	}
	if err != nil {
		r.Problems = append(r.Problems, problem(row, err, r.Invalid, field))
	}
	if nginx.Counts(err) {
		r.counted = append(r.counted, counted[S]{row, field})
	} else if row.OnError != nil {
		row.OnError(r.Settings)
	}
}

// problem words the error of a value.
func problem[S any](row *Row[S, string], err error, invalid report.Reason, field string) report.Problem {
	p := report.Problem{Severity: report.Error, Reason: invalid, Field: field, Message: err.Error()}
	var remark nginx.Remark
	var unsupported nginx.Unsupported
	if errors.As(err, &remark) {
		p.Severity = report.Warning
	}
	if errors.As(err, &unsupported) {
		p.Reason = report.UnsupportedValue
	}
	if row.Meanwhile != "" && !nginx.Counts(err) {
		p.Message += "; meanwhile, " + row.Meanwhile
	}
	return p
}

// Check warns of values that have no effect, or a surprising one, beside the others. Call it when all are read.
func (r *Reading[S]) Check() {
	for _, c := range r.counted {
		if c.row.Check == nil {
			continue
		}
		if message := c.row.Check(r.Settings); message != "" {
			r.Warn(r.Invalid, c.field, message)
		}
	}
}

// Warn adds a problem of little severity: what the object asks for is served.
func (r *Reading[S]) Warn(reason report.Reason, field, message string) {
	r.Problems = append(r.Problems, report.Problem{Severity: report.Warning, Reason: reason, Field: field, Message: message})
}

// Refuse adds a problem of high severity: something that the object asks for is not served.
func (r *Reading[S]) Refuse(reason report.Reason, field, message string) {
	r.Problems = append(r.Problems, report.Problem{Severity: report.Error, Reason: reason, Field: field, Message: message})
}
