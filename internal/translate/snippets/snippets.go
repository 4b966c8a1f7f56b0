// Package snippets interprets the nginx configuration that users write into annotations and the ConfigMap. Nothing
// executes this configuration: a text becomes typed values, or it is refused. The table in directives.txt lists all
// directives of nginx with their classes.
package snippets

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
)

//go:generate go test -run ^(TestDoc|TestDirectivesOfChart)$ -update

// Result is the meaning of the configuration of a location. It is immutable.
type Result struct {
	// Program and Substitution are nil if the text contains none of their directives. The same applies to Access, the
	// rules of allow and deny, and to Limits, the limits of limit_req and limit_conn. The block of limit_except is in
	// Program, and Access has the rules that apply besides it.
	Program      *ir.Program
	Substitution *ir.Substitution
	Access       *ir.AccessRules
	Limits       *ir.ZoneLimits
	// TryFiles is nil if the text does not pass all requests on.
	TryFiles *ir.TryFiles
	// WithoutPassword is the place of "auth_basic off", or nil.
	WithoutPassword *Place
	// Outside are the names of the variables that the text reads, and that have values before it runs. See
	// HTTP.Location.
	Outside []string
	// Values are the directives that have the effect of an annotation. No annotation, and no part of an annotation,
	// occurs twice.
	Values []Value
	// Findings contains one element for each directive and each error, in the order of the lines.
	Findings []Finding
	// PatternSize is the total size of the regular expressions, see package pattern.
	PatternSize int
}

// Value is a directive that has the effect of an annotation.
type Value struct {
	Place
	// Directive is the name of the directive.
	Directive string
	// Annotation is the name of the annotation without its prefix, and Text its value, which may contain variables if
	// the directive may.
	Annotation, Text string
	// Part is set if several directives together have the effect of the annotation.
	Part Part
}

// Finding returns a finding for a value that is not used. Its class is LeftOut or Unreadable.
func (v *Value) Finding(class Class, reason error) *Finding {
	f := &Finding{Place: v.Place, Directive: v.Directive, Class: class}
	if class == Unreadable {
		f.Text = notValid(v.Directive, reason) + report.Meanwhile + "requests get 503"
	} else {
		f.Text = sentence(quote(v.Directive), class, reason.Error())
	}
	return f
}

// Part is a part of the annotation proxy-ssl-secret. The text of its value is the name of a file.
type Part string

// The files that the Secret in the annotation proxy-ssl-secret replaces: the client certificate and its key, the
// certificate authorities of endpoints, and the revoked certificates.
const (
	CertificateFile Part = "tls.crt"
	KeyFile         Part = "tls.key"
	AuthorityFile   Part = "ca.crt"
	RevokedFile     Part = "ca.crl"
)

// Finding says what happens to one directive.
type Finding struct {
	Place
	// Directive is the name of the directive. It is empty for an error in the syntax.
	Directive string
	Class     Class
	// InLocation is true for a directive in a location of a text for servers. If it may keep clients out, requests for
	// this location are rejected, and no others.
	InLocation bool
	// Text is a sentence for the author of the configuration. It tells how to fix problems.
	Text string
}

// Place is a place in a text. Shared is true for the text from the ConfigMap. Line is 0 for the whole text.
type Place struct {
	Shared bool
	Line   int
}

// String returns the line and the sentence.
func (f *Finding) String() string {
	if f.Line == 0 {
		return f.Text
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.Text)
}

// Closed returns the first finding because of which requests must be rejected: an error, or a directive that may keep
// clients out. shared selects the text. It returns nil if requests can be served.
func (r *Result) Closed(shared bool) *Finding {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.Shared == shared &&
			(f.Class == Unreadable || f.Class == Guard && !f.InLocation) {
			return f
		}
	}
	return nil
}

// Location interprets the configuration of a location: the text of an Ingress, and the text that the ConfigMap adds to
// all locations behind it. Both may be empty. If one of them is unreadable, only the findings of the result are set.
func Location(own, shared string) *Result {
	return (*HTTP)(nil).Location(own, shared)
}

func interpretLocation(of texts) *Result {
	r := newReader(inLocation)
	r.readBoth(of)
	return r.finish()
}

func (r *reader) readBoth(of texts) {
	r.http = of.http
	own, ownFails := Parse(of.own)
	shared, sharedFails := Parse(of.shared)
	r.define(own)
	r.define(shared)
	for name := range strings.FieldsSeq(of.outside) {
		if !r.defined[name] {
			r.outside[name] = false
		}
	}
	r.read(own, ownFails)
	ofOwn := len(r.rules())
	r.shared = true
	r.read(shared, sharedFails)
	r.rulesOf = map[bool][]ir.AccessRule{false: r.rules()[:ofOwn], true: r.rules()[ofOwn:]}
}

// read interprets one text. err is the error of Parse.
func (r *reader) read(directives []Directive, err error) {
	r.errors = 0
	if err == nil {
		r.level(directives, r.top)
		return
	}
	r.out.Findings = append(r.out.Findings, syntaxError(err, r.shared))
}

// syntaxError returns the finding for an error of Parse. shared is true for the text of the ConfigMap.
func syntaxError(err error, shared bool) Finding {
	place := Place{Shared: shared}
	if invalid := (*lineError)(nil); errors.As(err, &invalid) {
		place.Line, err = invalid.line, invalid.reason
	}
	return Finding{Place: place, Class: Unreadable, Text: err.Error()}
}

// Main returns the findings for a text for the configuration of nginx's process, which is never applied. The text is a
// text of the ConfigMap.
func Main(text string) []Finding {
	r := newReader(inMain)
	r.shared = true
	directives, err := Parse(text)
	r.read(directives, err)
	return r.out.Findings
}

// finish returns the result after both texts have been read.
func (r *reader) finish() *Result {
	out := r.out
	if unreadable(out.Findings) {
		return &Result{Findings: out.Findings}
	}
	out.PatternSize = r.patternSize
	for _, name := range slices.Sorted(maps.Keys(r.outside)) {
		if r.outside[name] {
			out.Outside = append(out.Outside, name)
		}
	}
	for _, c := range r.conditions {
		if !c.own.isEmpty() {
			c.step.Directives = c.own.within(r.top)
		}
	}
	if r.top.steps != nil || !r.top.isEmpty() {
		out.Program = &ir.Program{Steps: r.top.steps, Directives: r.top.whole()}
	}
	r.limitMethods()
	if r.substitution.Pairs != nil {
		out.Substitution = &r.substitution
	}
	return out
}

func unreadable(all []Finding) bool {
	return slices.ContainsFunc(all, func(f Finding) bool { return f.Class == Unreadable })
}
