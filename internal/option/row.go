// Package option is the one form of all that users write as a name and a value: annotations of Ingresses and of Services, keys of
// the ConfigMap, and options of the Caddyfile. Each of these is a Table of rows, from which values are read and documents printed.
package option

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/k8singress/k8singress/internal/nginx"
)

// Scope says what an option changes, in the words of the table that it stands in.
type Scope string

// Risk is how much an option lets its author do, as ingress-nginx ranks annotations.
type Risk string

// Row is one option. S is the settings that it changes, and V is what it is read from: a string, or a line of a Caddyfile.
type Row[S, V any] struct {
	// Name is what users write. Of annotations, those of ingress-nginx stand here without their prefix, and others with it.
	Name string
	// Doc says in one or two sentences what the option does, Values what may stand in it, Default what holds without it. Example is a
	// value that works. All are Markdown without line breaks, but for the examples of Caddyfiles.
	Doc, Values, Example, Default string
	Scope                         Scope
	Risk                          Risk
	// Ignored says why the option has no effect here, whatever its value is, and is no mistake either. Such a row has Name and
	// Risk besides.
	Ignored string

	// Parse reads a value into the settings. An error is worded for the author of the value, and leaves the settings as they are;
	// a nginx.Remark or a nginx.Partial comes with a value that counts.
	Parse func(*S, V) error
	// Raw hands the value to Parse as it stands. Otherwise it comes without spaces round it, and an empty one asks for nothing.
	Raw bool
	// Lines allows a value of any length and of several lines.
	Lines bool
	// OnError is called for a value that cannot be used, to close what the option would have guarded. Meanwhile says at the end of
	// the error what holds as long as the value stands there, if that is more than no effect.
	OnError   func(*S)
	Meanwhile string
	// Check says why an option has no effect, or a surprising one, beside the others, once all of them are read. Empty is no problem.
	Check func(*S) string
}

// In returns the row that means for a part of T what another row means for S. It has no scope and no risk.
func In[T, S, V any](part func(*T) *S, row *Row[S, V]) Row[T, V] {
	in := Row[T, V]{
		Name: row.Name, Doc: row.Doc, Values: row.Values, Example: row.Example, Default: row.Default, Ignored: row.Ignored,
		Raw: row.Raw, Lines: row.Lines, Meanwhile: row.Meanwhile,
	}
	in.Parse = func(t *T, value V) error { return row.Parse(part(t), value) }
	if row.OnError != nil {
		in.OnError = func(t *T) { row.OnError(part(t)) }
	}
	if row.Check != nil {
		in.Check = func(t *T) string { return row.Check(part(t)) }
	}
	return in
}

// Table is the options of one kind, in the order of their documentation.
type Table[S, V any] []Row[S, V]

// Find returns the row of a name, or nil.
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

// MaxBytes bounds a value, which may be copied into every route.
const MaxBytes = 8192

// checkText refuses what could mean something to a log, a header or a terminal, and what is longer than anything of use.
func checkText(value string) error {
	if len(value) > MaxBytes {
		return fmt.Errorf("the value is %d bytes long: %d are the most", len(value), MaxBytes)
	}
	for _, r := range value {
		if nginx.IsControl(r) || r == unicode.ReplacementChar {
			return fmt.Errorf("the value has the character %U in it: write it on one line of plain text", r)
		}
	}
	return nil
}

// Unless returns a message if a condition does not hold. It is for Row.Check.
func Unless(holds bool, message string) string {
	if holds {
		return ""
	}
	return message
}

// Anchor returns what a link to the heading of a row has behind its #.
func (r *Row[S, V]) Anchor() string { return strings.NewReplacer(".", "", "/", "").Replace(r.Name) }
