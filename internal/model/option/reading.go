package option

import (
	"cmp"
	"errors"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
)

// A Reading parses the options of one Kubernetes object, such as its annotations. It stores their values in Settings
// and collects the problems that it finds.
type Reading[S any] struct {
	Settings *S
	Problems []report.Problem
	// Invalid is the Reason of the problems that are reported for invalid values.
	Invalid report.Reason

	// values lists the options that have a value.
	values []readValue[S]
}

// readValue is an option that has a value. usable is true if the value is valid and used.
type readValue[S any] struct {
	row    *Row[S, string]
	field  string
	usable bool
}

// Read parses a value of the option that row describes. field is the path of this value in the object. An invalid value
// is ignored and reported as a problem.
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
	usable := nginx.IsUsable(err)
	r.values = append(r.values, readValue[S]{row, field, usable})
	if !usable && row.OnError != nil {
		row.OnError(r.Settings)
	}
}

// The function problem converts an error that a parser has returned for a value into a problem.
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
	if row.Meanwhile != "" && !nginx.IsUsable(err) {
		p.Message += report.Meanwhile + row.Meanwhile
	}
	return p
}

// Check adds a warning for each value that has no effect or an unexpected effect in combination with other values, and
// the problems that Row.Report returns. It must be called after all values are read.
func (r *Reading[S]) Check() {
	for _, c := range r.values {
		if c.usable && c.row.Check != nil {
			if message := c.row.Check(r.Settings); message != "" {
				r.Warn(r.Invalid, c.field, message)
			}
		}
		if c.row.Report != nil {
			for _, p := range c.row.Report(r.Settings) {
				p.Field, p.Reason = c.field, cmp.Or(p.Reason, r.Invalid)
				r.Problems = append(r.Problems, p)
			}
		}
	}
}

// Warn adds a problem of severity Warning. Everything that the object requests is still served.
func (r *Reading[S]) Warn(reason report.Reason, field, message string) {
	r.Problems = append(r.Problems, report.Problem{Severity: report.Warning, Reason: reason, Field: field,
		Message: message})
}

// Refuse adds a problem of severity Error: something that the object requests is not served.
func (r *Reading[S]) Refuse(reason report.Reason, field, message string) {
	r.Problems = append(r.Problems, report.Problem{Severity: report.Error, Reason: reason, Field: field,
		Message: message})
}
