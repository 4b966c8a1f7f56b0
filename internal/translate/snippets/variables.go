package snippets

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// checkPattern checks a regular expression. The total size of all expressions of a result is limited.
func (r *reader) checkPattern(text string, fold bool) error {
	size := pattern.Size
	if fold {
		size = pattern.FoldSize
	}
	n, err := size(text)
	if err != nil {
		return err
	}
	if r.patternSize += n; r.patternSize > pattern.MaxHostSize {
		return fmt.Errorf("the regular expressions of the snippet are too large together: they compile to more than "+
			"%d instructions; write shorter ones", pattern.MaxHostSize)
	}
	for _, name := range ir.GroupNames(text) {
		if err := checkSettable(name); err != nil {
			return err
		}
		if err := r.checkAuthVariables(name); err != nil {
			return err
		}
	}
	return nil
}

// define records the variables that directives define. nginx allows a variable to be used before its definition.
func (r *reader) define(directives []Directive) {
	for i := range directives {
		d := &directives[i]
		switch {
		case len(d.Args) == 0:
		case d.Name == "set", d.Name == "auth_request_set":
			r.defined[strings.ToLower(strings.TrimPrefix(d.Args[0], "$"))] = true
		case d.Name == "rewrite":
			r.defineGroups(d.Args[0])
		case d.Name == "if":
			if words, ok := withoutParentheses(d.Args); ok && len(words) > 0 {
				r.defineGroups(words[len(words)-1])
			}
			r.define(d.Block)
		case d.Name == "location":
			r.defineGroups(d.Args[len(d.Args)-1])
			r.define(d.Block)
		}
	}
}

// Defined returns the names of the variables that a text defines. It returns none for an unreadable text.
func Defined(text string) []string {
	directives, err := Parse(text)
	if err != nil {
		return nil
	}
	r := newReader(inServer)
	r.define(directives)
	return slices.Sorted(maps.Keys(r.defined))
}

func (r *reader) defineGroups(expression string) {
	for _, name := range ir.GroupNames(expression) {
		r.defined[name] = true
	}
}

// withVariable matches a variable in a template, except the groups $1 to $9.
var withVariable = regexp.MustCompile(`\$(\{[0-9A-Za-z_]+\}|[A-Za-z_][0-9A-Za-z_]*)`)

// lowerVariables writes the names of variables in lower case, because nginx ignores their case.
func lowerVariables(text string) string {
	return withVariable.ReplaceAllStringFunc(text, strings.ToLower)
}

// checkTemplate checks the variables of a template, and writes their names in lower case.
func (r *reader) checkTemplate(text *string) error {
	*text = lowerVariables(*text)
	unknown := ""
	t, err := nginx.ParseTemplate(*text, func(name string) bool {
		if r.knows(name) || r.inHeader && alwaysEmpty[name] != "" {
			return true
		}
		unknown = name
		return false
	})
	switch {
	case unknown != "":
		return r.unknown(unknown)
	case err != nil:
		return err
	}
	return r.checkAuthVariables(t.Variables()...)
}

// alwaysEmpty maps variables of nginx that never have a value to the reasons. Only values of header fields may contain
// them, which decide about nothing.
var alwaysEmpty = map[string]string{"upstream_cache_status": "there is no proxy_cache here"}

// setsHeader lists the directives whose values of header fields may contain the variables of alwaysEmpty. Conditions
// may depend on more_set_input_headers.
var setsHeader = []string{"add_header", "more_set_headers", "proxy_set_header", "grpc_set_header"}

// findEmpty adds a finding for each variable of alwaysEmpty in a value of a header field.
func (r *reader) findEmpty(d *Directive) {
	if r.auth || !slices.Contains(setsHeader, d.Name) {
		return
	}
	for _, arg := range d.Args {
		split := nginx.SplitTemplate(lowerVariables(arg))
		for _, name := range split.Names {
			if reason := alwaysEmpty[name]; reason != "" {
				r.out.Findings = append(r.out.Findings, Finding{Place: r.place(d), Directive: d.Name, Class: NoEffect,
					InLocation: r.location != nil,
					Text:       fmt.Sprintf("the variable $%s is always empty, because %s", name, reason)})
			}
		}
	}
}

// checkOneLine is like checkTemplate, for a template whose value becomes a part of a header.
func (r *reader) checkOneLine(text *string) error {
	if strings.ContainsFunc(*text, isControl) {
		return errControl
	}
	return r.checkTemplate(text)
}

var errControl = errors.New("the value contains a line break or another control character: write it on one line")

func isControl(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }

// checkVariable checks the name of the variable in a condition, and writes it in lower case. As in nginx, it cannot be
// a group such as $1.
func (r *reader) checkVariable(name *string) error {
	*name = strings.ToLower(*name)
	if len(*name) == 1 && '1' <= (*name)[0] && (*name)[0] <= '9' {
		return fmt.Errorf("$%s cannot be compared: set a variable to it, and compare that", *name)
	}
	if !nginx.IsVariable(*name) || !r.knows(*name) {
		return r.unknown(*name)
	}
	return r.checkAuthVariables(*name)
}

// knows reports whether templates may contain the variable.
func (r *reader) knows(name string) bool {
	if _, ok := r.outside[name]; ok && exchange.VariableOf(name) == nil {
		r.outside[name] = true
		return true
	}
	return r.defined[name] || r.http.knows(name) || exchange.VariableOf(name) != nil ||
		len(name) == 1 && '1' <= name[0] && name[0] <= '9'
}

// unknown returns the error for a variable that the text cannot contain.
func (r *reader) unknown(name string) error {
	return r.http.unknown(name, slices.AppendSeq(slices.Collect(maps.Keys(r.defined)), maps.Keys(r.outside))...)
}

// routing contains the variables with which ingress-nginx chooses a backend, and which do not exist here.
var routing = []string{
	"global_rate_limit_exceeding", "pass_port", "pass_server_port", "proxy_alternative_upstream_name", "proxy_host",
}

// variableName returns the name of the variable that set or auth_request_set sets.
func variableName(arg string) (string, error) {
	name, ok := strings.CutPrefix(strings.ToLower(arg), "$")
	if !ok {
		return "", fmt.Errorf("%s is not a variable: write $%s", nginx.Quote(arg), arg)
	}
	return name, checkSettable(name)
}

// checkSettable returns an error unless a text may set the variable. As in nginx, variables that describe the request
// can only be read, except $args.
func checkSettable(name string) error {
	switch {
	case !nginx.IsVariable(name), '0' <= name[0] && name[0] <= '9':
		return fmt.Errorf("%s is not the name of a variable: write letters, digits and _ behind the $",
			nginx.Quote(name))
	case exchange.CheckSettable(name) != nil, slices.Contains(routing, name), alwaysEmpty[name] != "":
		return fmt.Errorf("the variable $%s cannot be set: use another name", name)
	}
	return nil
}
