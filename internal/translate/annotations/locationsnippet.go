package annotations

import (
	"fmt"
	"slices"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// locationTexts holds the snippets for locations and their meaning.
type locationTexts struct {
	// Own is the text of the annotation configuration-snippet, and Shared the text of the ConfigMap key
	// location-snippet. Both are readable.
	Own, Shared string
	// Read is the meaning of both texts. It is nil if there are none. Invalid contains findings for the values of
	// annotations in Read that are invalid or have no effect.
	Read    *snippets.Result
	Invalid []snippets.Finding
	// Refused contains the findings for texts that cannot be interpreted, except the findings that are their errors.
	Refused []snippets.Finding
	// Annotated are the names of the annotations of the Ingress. It is nil if Shared is empty.
	Annotated []string
}

// applies reports whether a value in the snippets takes effect. An annotation of the Ingress takes precedence over the
// text of the ConfigMap. nginx would refuse both together.
func (l *locationTexts) applies(v snippets.Value) bool {
	return !v.Shared || !slices.ContainsFunc(l.Annotated, func(name string) bool {
		return name == v.Annotation || isProxyRedirect(name) && isProxyRedirect(v.Annotation)
	})
}

func isProxyRedirect(name string) bool {
	return name == proxyRedirectFrom.Name || name == proxyRedirectTo.Name
}

// overridden returns an information for each line of the ConfigMap's snippet that an annotation of the Ingress
// overrides.
func (l *locationTexts) overridden() (all []report.Problem) {
	if l.Read == nil {
		return nil
	}
	add := func(annotation string, line int) {
		all = append(all, report.Problem{Severity: report.Info, Reason: report.UnsupportedValue,
			Field: report.AnnotationField(Key(annotation)), Message: fmt.Sprintf(
				"line %d of location-snippet in the ConfigMap sets the same, and has no effect on this Ingress: "+
					"the annotation takes precedence", line)})
	}
	if place := l.Read.WithoutPassword; place != nil && place.Shared && slices.Contains(l.Annotated, authType.Name) {
		add(authType.Name, place.Line)
	}
	for _, v := range l.Read.Values {
		if !l.applies(v) && slices.Contains(l.Annotated, v.Annotation) {
			add(v.Annotation, v.Line)
		}
	}
	return all
}

const locationDoc = " The page [Snippets](snippets.md) lists the directives and their effects. If the snippet " +
	"contains a directive that may keep clients out and is not supported, or if it cannot be parsed, all requests " +
	"get 503."

// The rows for the snippets for locations: an annotation, and the key of the ConfigMap.
var (
	configurationSnippet = locationSnippet("configuration-snippet",
		"nginx configuration for the paths of the Ingress."+locationDoc+gateDoc, rowConfiguration, false)
	LocationsSnippet = func() Annotation {
		row := locationSnippet("location-snippet",
			"nginx configuration for each path, behind the snippet of the Ingress."+locationDoc, rowLocations, true)
		row.Meanwhile = allClosed
		return row
	}()
)

// locationSnippet returns the row for a snippet for locations. shared is true for the text of the ConfigMap.
func locationSnippet(name, doc string, row snippetRow, shared bool) Annotation {
	text := func(s *Settings) *string {
		if shared {
			return &s.Asked.Snippets.Location.Shared
		}
		return &s.Asked.Snippets.Location.Own
	}
	of := interpretedSnippet(row, func(s *Settings, value string) error {
		read := s.interpretAlone(value, shared)
		if f := read.Closed(shared); f != nil {
			l := &s.Asked.Snippets.Location
			l.Refused = slices.Concat(l.Refused, slices.DeleteFunc(slices.Clone(read.Findings),
				func(other snippets.Finding) bool { return other == *f }))
			return nginx.Unsupported(f.String())
		}
		*text(s) = value
		return nil
	})
	of.Name, of.Doc, of.Example = name, doc, "more_set_headers \"X-Frame-Options: DENY\";"
	of.Scope, of.OnError, of.Meanwhile = ScopeLocation, (*Settings).close, ingressClosed
	of.Report = func(s *Settings) []report.Problem { return s.locationProblems(shared) }
	return of
}

// interpretAlone interprets one of the two snippets for locations.
func (s *Settings) interpretAlone(text string, shared bool) *snippets.Result {
	if shared {
		return s.HTTP.Location("", text, s.variablesOutside()...)
	}
	return s.HTTP.Location(text, "", s.variablesOutside()...)
}

// variablesOutside returns the names of the variables that may have values before the snippets for locations run.
func (s *Settings) variablesOutside() []string {
	return slices.Concat(s.PathGroups, s.serverVariables())
}

// finishLocation interprets the snippets for locations, and sets the values of annotations that they contain.
func (s *Settings) finishLocation() {
	l := &s.Asked.Snippets.Location
	if l.Read, l.Invalid = nil, nil; l.Own == "" && l.Shared == "" {
		return
	}
	l.Read = s.HTTP.Location(l.Own, l.Shared, s.variablesOutside()...)
	l.Invalid = s.setValues(slices.DeleteFunc(slices.Clone(l.Read.Values), func(v snippets.Value) bool {
		return !l.applies(v)
	}))
}

// checkLocation makes all requests get 503 if the snippets of the Ingress and of the ConfigMap cannot be interpreted
// together. It also finds values of annotations in the snippets that have no effect, such as TLS settings for endpoints
// that do not use TLS. Do not call it for the settings of the ConfigMap, because every Ingress would inherit the
// result.
func (s *Settings) checkLocation() {
	l := &s.Asked.Snippets.Location
	if l.Read == nil {
		return
	}
	s.Closed = s.Closed || l.Read.Closed(false) != nil || l.Read.Closed(true) != nil ||
		slices.ContainsFunc(l.Invalid, closes)
	if place := l.Read.WithoutPassword; place != nil && !place.Shared && s.AsksPassword() {
		l.Invalid = append(l.Invalid, snippets.Finding{Place: *place, Class: snippets.LeftOut,
			Text: `"auth_basic" is left out, because nginx refuses it beside the annotation auth-type: remove ` +
				`auth-type to serve clients without a password`})
	}
	for _, v := range l.Read.Values {
		row := Table.Find(v.Annotation)
		if row.Check == nil || !l.applies(v) {
			continue
		}
		if message := row.Check(s); message != "" {
			l.Invalid = append(l.Invalid, snippets.Finding{Place: v.Place, Class: snippets.LeftOut,
				Text: fmt.Sprintf("as for the annotation %s, %s", v.Annotation, message)})
		}
	}
}

// maxLineProblems is the maximum number of problems that are reported for the lines of one snippet.
const maxLineProblems = 20

// locationProblems returns the problems of the lines of one of the two snippets.
func (s *Settings) locationProblems(shared bool) []report.Problem {
	l := &s.Asked.Snippets.Location
	findings := slices.Concat(l.Refused, l.Invalid)
	if l.Read != nil {
		findings = slices.Concat(l.Refused, l.Read.Findings, l.Invalid)
	}
	return problemsOf(findings, shared)
}

// problemsOf returns the problems of one text.
func problemsOf(findings []snippets.Finding, shared bool) (all []report.Problem) {
	for _, f := range findings {
		if f.Shared != shared || f.Class == snippets.Works {
			continue
		}
		if len(all) == maxLineProblems {
			return append(all, report.Problem{Severity: report.Warning, Reason: report.UnsupportedValue,
				Message: "more lines have problems"})
		}
		all = append(all, report.Problem{Severity: severityOf[f.Class], Reason: report.UnsupportedValue,
			Message: f.String()})
	}
	return all
}

var severityOf = map[snippets.Class]report.Severity{
	snippets.NoEffect: report.Info, snippets.LeftOut: report.Warning,
	snippets.Guard: report.Error, snippets.Unreadable: report.Error,
}

// locationFilters returns the filters that run the snippets for locations.
func (s *Settings) locationFilters(path string) (all []ir.Filter) {
	names := s.groupVariables(path)
	if names != nil {
		all = append(all, ir.PathGroups{Names: names})
	}
	read := s.Asked.Snippets.Location.Read
	if read == nil {
		return all
	}
	if read.Program != nil {
		program := *read.Program
		program.PathGroups, program.RelativeRedirects = names, s.RelativeRedirects
		all = append(all, program)
	}
	if read.Substitution != nil {
		all = append(all, *read.Substitution)
	}
	return all
}

// passedOn returns the filter that passes all requests on because of try_files in a snippet, or nil.
func (s *Settings) passedOn(string) []ir.Filter {
	read := s.Asked.Snippets.Location.Read
	if read == nil || read.TryFiles == nil {
		return nil
	}
	return []ir.Filter{*read.TryFiles}
}

// snippetRules returns the rules of allow and deny in snippets for locations, or nil if there are none. The lists of
// the annotations come first in nginx, and a list of allowed addresses decides about every address. The program checks
// the block of limit_except, so the rules contain it only if withBlock is true.
func (s *Settings) snippetRules(withBlock bool) *ir.AccessRules {
	read := s.Asked.Snippets.Location.Read
	if read == nil || read.Access == nil || s.allowedSources() != nil {
		return nil
	}
	denied := make([]ir.AccessRule, len(s.SourceRanges.Deny))
	for i, network := range s.SourceRanges.Deny {
		denied[i].Network = network
	}
	rules := &ir.AccessRules{Rules: slices.Concat(denied, read.Access.Rules)}
	if limit := read.Access.LimitExcept; limit != nil {
		var block []ir.AccessRule
		if withBlock {
			block = read.Program.LimitExcept.Rules
		}
		rules.LimitExcept = &ir.LimitExcept{Methods: limit.Methods, Rules: slices.Concat(denied, block, limit.Rules)}
	}
	return rules
}

// admittingRules returns the rules in snippets for locations for a filter that admits clients without a password. They
// deny clients that no rule mentions. admittingRules returns nil if no rule allows clients.
func (s *Settings) admittingRules() *ir.AccessRules {
	rules := s.snippetRules(true)
	if rules == nil {
		return nil
	}
	allows := func(r ir.AccessRule) bool { return r.Allow }
	admits, rest := slices.ContainsFunc(rules.Rules, allows), ir.AccessRule{Network: ir.AllClients}
	rules.Rules = append(rules.Rules, rest)
	if limit := rules.LimitExcept; limit != nil {
		admits = admits || slices.ContainsFunc(limit.Rules, allows)
		limit.Rules = append(limit.Rules, rest)
	}
	if !admits {
		return nil
	}
	return rules
}

// SnippetSize returns the total size of the regular expressions in snippets, see package pattern.
func (s *Settings) SnippetSize() (size int) {
	for _, read := range []*snippets.Result{
		s.Asked.Snippets.Location.Read, s.Asked.Auth.Snippet.Read, s.Asked.GlobalAuth.Snippet.Read,
	} {
		if read != nil {
			size += read.PatternSize
		}
	}
	if read := s.readServer(); read != nil {
		size += read.PatternSize
	}
	return size
}
