// Package option defines the common form of all options that users set by name: annotations of Ingresses and Services,
// keys of the ConfigMap, and options of the Caddyfile. Each of these sets of options is a Table of rows, which is used
// to parse the values and to generate the documentation.
package option

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
)

// Scope is the part of the configuration that an option applies to. Each table defines its own scopes.
type Scope string

// Risk is the security risk of an option, as ingress-nginx classifies its annotations.
type Risk string

// Row defines one option. S is the type of the settings that it changes. V is the type of the value: a string, or a
// line of a Caddyfile.
type Row[S, V any] struct {
	// Name is the name that users write. Annotations of ingress-nginx are listed without their prefix, and other
	// annotations with it.
	Name string
	// Doc describes the option in one or two sentences. Values describes the accepted values, and Default the behavior
	// without the option. Example is a valid value. All of them are Markdown without line breaks, except the examples
	// of Caddyfiles.
	Doc, Values, Example, Default string
	Scope                         Scope
	Risk                          Risk
	// Passthrough is true if the option also has its effect if TLS connections are passed through: it applies to these
	// connections, it prevents passthrough, or it only concerns requests without TLS. It is used for annotations only.
	Passthrough bool
	// Ignored is the reason why the option has no effect in this controller, whatever its value. It is empty for all
	// other options. Using an ignored option is not an error. Its row contains only Name, Risk and Ignored.
	Ignored string

	// Parse parses a value and changes the settings. Its errors are written for the author of the value. If it returns
	// an error, the settings are unchanged, unless the error is a nginx.Remark or a nginx.Partial.
	Parse func(*S, V) error
	// Raw passes the value to Parse unchanged. Otherwise white space around it is removed, and an empty value is
	// ignored.
	Raw bool
	// Lines allows a value of any length and with several lines.
	Lines bool
	// OnError, if not nil, is called if the value is invalid. It rejects the requests that the option would have
	// restricted. Meanwhile describes the behavior until the value is fixed, and is appended to the error message.
	// Meanwhile is empty if an invalid value simply has no effect.
	OnError   func(*S)
	Meanwhile string
	// Check is called after all options are read. It returns a message if the option has no effect or an unexpected
	// effect in combination with the other options, otherwise "".
	Check func(*S) string
	// Report is called after Check, also if the value is invalid. It returns more problems of the value, such as a
	// warning for each of its lines. The field of a problem is filled in, and so is an empty reason.
	Report func(*S) []report.Problem
}

// In converts a row for settings of type S to a row for settings of type T, which contain an S. The function part
// returns the S in a T. The result has no Scope, Risk and Passthrough.
func In[T, S, V any](part func(*T) *S, row *Row[S, V]) Row[T, V] {
	in := Row[T, V]{
		Name: row.Name, Doc: row.Doc, Values: row.Values, Example: row.Example, Default: row.Default,
		Ignored: row.Ignored,
		Raw:     row.Raw, Lines: row.Lines, Meanwhile: row.Meanwhile,
	}
	in.Parse = func(t *T, value V) error { return row.Parse(part(t), value) }
	if row.OnError != nil {
		in.OnError = func(t *T) { row.OnError(part(t)) }
	}
	if row.Check != nil {
		in.Check = func(t *T) string { return row.Check(part(t)) }
	}
	if row.Report != nil {
		in.Report = func(t *T) []report.Problem { return row.Report(part(t)) }
	}
	return in
}

// Table lists the options of one kind, such as the annotations of Ingresses, in the order of their documentation.
type Table[S, V any] []Row[S, V]

// Find returns the row with the given name, or nil if there is no such row.
func (t Table[S, V]) Find(name string) *Row[S, V] {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Names returns the names of all rows.
func (t Table[S, V]) Names() []string {
	names := make([]string, len(t))
	for i := range t {
		names[i] = t[i].Name
	}
	return names
}

// MaxBytes is the maximum length of a value in bytes. Values are limited because each of them may be copied into every
// route.
const MaxBytes = 8192

// checkText returns an error for values that are too long, or that contain characters with a special meaning in a log,
// a header or a terminal.
func checkText(value string) error {
	if len(value) > MaxBytes {
		return fmt.Errorf("the value is %d bytes long, and the limit is %d", len(value), MaxBytes)
	}
	for _, r := range value {
		if nginx.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("the value contains the character %U: write it on one line of plain text", r)
		}
	}
	return nil
}

// Unless is a helper for Row.Check: it returns "" if holds is true, and message otherwise.
func Unless(holds bool, message string) string {
	if holds {
		return ""
	}
	return message
}

// Anchor returns the anchor of the option in the documentation: the URL fragment without "#".
func (r *Row[S, V]) Anchor() string { return strings.NewReplacer(".", "", "/", "").Replace(r.Name) }
