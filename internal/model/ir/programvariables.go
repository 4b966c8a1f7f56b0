package ir

import (
	"iter"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// Templates returns all templates of the program, and the variables of its conditions in the form of templates.
func (p *Program) Templates() iter.Seq[string] {
	return func(yield func(string) bool) {
		for t := range stepTemplates(p.Steps, false) {
			if !yield(t.text) {
				return
			}
		}
		for d := range p.allDirectives() {
			for text := range d.templates() {
				if !yield(text) {
					return
				}
			}
		}
	}
}

// stepTemplate is a template of a step. ownGroups is true if the variables $1 to $9 in it stand for the groups of a
// regular expression of the program, and not of the route.
type stepTemplate struct {
	text      string
	ownGroups bool
}

// stepTemplates returns the templates of steps. ownGroups is true if the steps run after a regular expression has
// matched.
func stepTemplates(steps []Step, ownGroups bool) iter.Seq[stepTemplate] {
	return func(yield func(stepTemplate) bool) {
		for i := range steps {
			for t := range steps[i].templates(ownGroups) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

func (s *Step) templates(ownGroups bool) iter.Seq[stepTemplate] {
	switch {
	case s.Set != nil:
		return slices.Values([]stepTemplate{{s.Set.Value, ownGroups}})
	case s.Return != nil:
		return slices.Values([]stepTemplate{{s.Return.Text, ownGroups}})
	case s.Rewrite != nil:
		return slices.Values([]stepTemplate{{s.Rewrite.Target, true}})
	case s.If != nil:
		return s.If.templates(ownGroups)
	}
	return func(func(stepTemplate) bool) {}
}

func (f *If) templates(ownGroups bool) iter.Seq[stepTemplate] {
	return func(yield func(stepTemplate) bool) {
		if !yield(stepTemplate{"${" + f.Variable + "}", ownGroups}) {
			return
		}
		if f.Operator == Equal || f.Operator == NotEqual {
			if !yield(stepTemplate{f.Value, ownGroups}) {
				return
			}
		}
		stepTemplates(f.Steps, ownGroups || f.Operator == Matches || f.Operator == MatchesFold)(yield)
	}
}

// allDirectives returns the directives of the program and of its conditions.
func (p *Program) allDirectives() iter.Seq[*Directives] {
	return func(yield func(*Directives) bool) {
		if yield(&p.Directives) {
			conditionDirectives(p.Steps, yield)
		}
	}
}

func conditionDirectives(steps []Step, yield func(*Directives) bool) bool {
	for i := range steps {
		f := steps[i].If
		if f != nil && (f.Directives != nil && !yield(f.Directives) || !conditionDirectives(f.Steps, yield)) {
			return false
		}
	}
	return true
}

func (d *Directives) templates() iter.Seq[string] {
	return func(yield func(string) bool) {
		var all []string
		for _, h := range d.EndpointHeaders {
			all = append(all, h.Value)
		}
		for _, h := range d.AddHeaders {
			all = append(all, h.Value)
		}
		if d.Expires != nil && d.Expires.Template != "" {
			all = append(all, d.Expires.Template)
		}
		for _, more := range slices.Concat(d.InputHeaders, d.MoreHeaders) {
			for _, h := range more.Set {
				all = append(all, h.Value)
			}
		}
		for _, c := range d.CookieFlags {
			if !strings.HasPrefix(c.Cookie, "~") {
				all = append(all, c.Cookie)
			}
			all = append(all, c.Flags...)
		}
		for _, v := range d.AuthVariables {
			all = append(all, v.Value)
		}
		for i := range d.Errors.Pages {
			all = append(all, d.Errors.Pages[i].Target)
		}
		slices.Values(all)(yield)
	}
}

// ChangesNothing reports whether there are no directives.
func (d *Directives) ChangesNothing() bool { return reflect.ValueOf(d).Elem().IsZero() }

var groupVariable = regexp.MustCompile(`\$\{?[1-9]`)

// UsesGroups reports whether a template of the program contains one of the variables $1 to $9.
func (p *Program) UsesGroups() bool {
	for text := range p.Templates() {
		if groupVariable.MatchString(text) {
			return true
		}
	}
	return false
}

// GroupNames returns the names of the named groups of a regular expression, in lower case, because they become nginx
// variables, whose case is ignored. It returns nil if the expression is not valid.
func GroupNames(expression string) []string {
	if !strings.Contains(expression, "(?") {
		return nil
	}
	tree, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil
	}
	var names []string
	for _, name := range tree.CapNames() {
		if name != "" {
			names = append(names, strings.ToLower(name))
		}
	}
	return names
}

// OwnVariables returns the names of the variables that the program sets, which include the named groups of its regular
// expressions. It may contain duplicates.
func (p *Program) OwnVariables() []string {
	names := ownVariables(p.Steps)
	for d := range p.allDirectives() {
		for _, v := range d.AuthVariables {
			names = append(names, v.Name)
		}
	}
	return names
}

func ownVariables(steps []Step) (names []string) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Set != nil:
			names = append(names, s.Set.Name)
		case s.Rewrite != nil:
			names = append(names, GroupNames(s.Rewrite.Pattern)...)
		case s.If != nil:
			if s.If.searches() {
				names = append(names, GroupNames(s.If.Value)...)
			}
			names = append(names, ownVariables(s.If.Steps)...)
		}
	}
	return names
}

// AuthHeaders returns the names of the header fields of the response of external authentication that the program uses.
// It may contain duplicates.
func (p *Program) AuthHeaders() (names []string) {
	for d := range p.allDirectives() {
		for _, v := range d.AuthVariables {
			for _, found := range upstreamHeader.FindAllStringSubmatch(v.Value, -1) {
				names = append(names, strings.ReplaceAll(found[1], "_", "-"))
			}
		}
	}
	return names
}

var upstreamHeader = regexp.MustCompile(`\$\{?upstream_http_(\w+)`)

// WithAuthHeaders returns the filters. In the result, each ExternalAuth keeps the header fields of its response that a
// program in the list uses.
func WithAuthHeaders(filters []Filter) []Filter {
	var names []string
	for _, f := range filters {
		if p, ok := f.(Program); ok {
			names = append(names, p.AuthHeaders()...)
		}
	}
	if names == nil {
		return filters
	}
	slices.Sort(names)
	return keepingHeaders(filters, slices.Compact(names))
}

func keepingHeaders(filters []Filter, names []string) []Filter {
	changed := slices.Clone(filters)
	for i := range changed {
		switch f := changed[i].(type) {
		case ExternalAuth:
			f.KeptHeaders = names
			changed[i] = f
		case AnyOf:
			f.Filters = keepingHeaders(f.Filters, names)
			changed[i] = f
		}
	}
	return changed
}

// ofRequest matches the nginx variables whose values do not depend on the route.
var ofRequest = regexp.MustCompile(`^((arg|cookie|http)_\w+|args|best_http_host|binary_remote_addr|content_type|` +
	`document_uri|escaped_request_uri|host|http_host|https|is_args|msec|pass_access_scheme|` +
	`proxy_add_x_forwarded_for|query_string|remote_(addr|port|user)|req_id|request_(id|method|uri)|scheme|` +
	`server_(addr|port|protocol)|ssl_\w+|status|the_real_ip|uri)$`)

var anyVariable = regexp.MustCompile(`\$\{?([1-9]|\w+)`)

// namesRoute reports whether a template of the program contains a variable that describes the route.
func (p *Program) namesRoute() bool {
	for text := range p.Templates() {
		if ofRoute.MatchString(text) {
			return true
		}
	}
	return false
}

// readsRoute reports whether the steps may depend on the route: on variables that describe it, or on the groups of its
// regular expression.
func (p *Program) readsRoute() bool {
	own := ownVariables(p.Steps)
	for t := range stepTemplates(p.Steps, false) {
		for _, found := range anyVariable.FindAllStringSubmatch(t.text, -1) {
			name := found[1]
			isGroup := len(name) == 1 && '1' <= name[0] && name[0] <= '9'
			if isGroup && !t.ownGroups || !isGroup && !ofRequest.MatchString(name) && !slices.Contains(own, name) {
				return true
			}
		}
	}
	return false
}
