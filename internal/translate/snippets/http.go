package snippets

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/suggest"
)

// HTTP is the meaning of the configuration for all hosts: the variables, zones and servers that it defines, and the
// directives that all servers inherit. It is immutable. Nil defines none.
type HTTP struct {
	// Variables are the variables that other texts and templates may contain.
	Variables []ir.Variable
	// Zones are the zones that limits may use.
	Zones Zones
	// Values are the directives that have the effect of an annotation on the paths of all Ingresses.
	Values []Value
	// Servers are the servers that listen on ports of their own.
	Servers []HTTPServer
	// RealIP holds the directives that determine the addresses of clients. It is nil if there are none.
	RealIP *RealIP
	// Findings contains one element for each directive and each error, in the order of the lines.
	Findings []Finding
	// Traits maps the names of the variables, in lower case, to what is known about their values.
	Traits map[string]Traits
	// outer is the level that servers inherit. It is nil if the text is unreadable.
	outer *reader
}

// Traits say from which other variables the value of a variable is derived, directly or not.
type Traits struct {
	// OfResponse is true for variables of the response, and OfAddress for the address of the client.
	OfResponse, OfAddress bool
}

// Closed returns the first finding because of which requests must be rejected: an error, or a directive that may keep
// clients out. It returns nil if requests can be served.
func (h *HTTP) Closed() *Finding {
	r := Result{Findings: h.Findings}
	return r.Closed(true)
}

// knows reports whether the text defines a variable. The name is in lower case.
func (h *HTTP) knows(name string) bool {
	if h == nil {
		return false
	}
	_, ok := h.Traits[name]
	return ok
}

// HasZones reports whether the text defines zones for limits.
func (h *HTTP) HasZones() bool { return h != nil && len(h.Zones.Requests)+len(h.Zones.Connections) > 0 }

// ofAddress reports whether the value of a variable is derived from the address of the client.
func (h *HTTP) ofAddress(name string) bool { return h != nil && h.Traits[name].OfAddress }

// CheckVariables checks the variables of a template of the request: each of them must be a variable of nginx, a
// capture group, in more, or defined in the text. Package exchange checks the rest of the syntax, and which variables
// of nginx exist for requests.
func (h *HTTP) CheckVariables(template string, more ...string) error {
	split := nginx.SplitTemplate(template)
	for _, name := range split.Names {
		low := strings.ToLower(name)
		switch {
		case '0' <= name[0] && name[0] <= '9', exchange.VariableOf(name) != nil, slices.Contains(more, name):
		case !h.knows(low):
			return h.unknown(name, more...)
		case h.Traits[low].OfResponse:
			return fmt.Errorf("the variable $%s is derived from the response, which does not exist yet here", name)
		}
	}
	return nil
}

// unknown returns the error for a variable that is neither a variable of nginx nor defined in the text, nor in more.
func (h *HTTP) unknown(name string, more ...string) error {
	names := slices.Concat(exchange.VariableNames(), more)
	if h != nil {
		names = slices.AppendSeq(names, maps.Keys(h.Traits))
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = "$" + name
	}
	hint := suggest.Hint("$"+name, names)
	switch {
	case strings.HasPrefix(name, "geoip_"), strings.HasPrefix(name, "geoip2_"):
		hint = ", because use-geoip and use-geoip2 are not supported"
	case strings.HasPrefix(name, "request_body"):
		hint = ", because snippets cannot read the body of requests"
	}
	return fmt.Errorf("there is no variable $%s here%s", name, hint)
}

// Unknown returns the names in a list that are not variables of the text.
func (h *HTTP) Unknown(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return h.knows(strings.ToLower(name)) })
}

// Location is like the function Location, for texts that may contain the variables of h. outside are the names of more
// variables that have values before the texts run: the groups in the regular expressions of the paths, and the
// variables of servers.
func (h *HTTP) Location(own, shared string, outside ...string) *Result {
	return locationResults.of(texts{own, shared, h, strings.Join(outside, " ")}, interpretLocation)
}

// Server is like the function Server, for texts that may contain the variables of h.
func (h *HTTP) Server(own, shared string) *ServerResult {
	return serverResults.of(texts{own: own, shared: shared, http: h}, interpretServer)
}

// Auth is like the function Auth, for a text that may contain the variables of h.
func (h *HTTP) Auth(text string) *Result {
	return authResults.of(texts{own: text, http: h}, interpretAuth)
}

// lastHTTP is the last result of ReadHTTP. The results of other texts belong to it, so an equal text has the same one.
var lastHTTP atomic.Pointer[struct {
	text   string
	result *HTTP
}]

// ReadHTTP interprets the configuration for all hosts, which is a text of the ConfigMap. If it is unreadable, only the
// findings of the result are set.
func ReadHTTP(text string) *HTTP {
	if last := lastHTTP.Load(); last != nil && last.text == text {
		return last.result
	}
	h := interpretHTTP(text)
	lastHTTP.Store(&struct {
		text   string
		result *HTTP
	}{text, h})
	return h
}

// interpretHTTP reads the definitions first, because other directives may use them before their lines.
func interpretHTTP(text string) *HTTP {
	r := newReader(inHTTP)
	r.shared = true
	directives, err := Parse(text)
	definitions, others := splitDefinitions(directives)
	r.read(definitions, err)
	h := &HTTP{Traits: map[string]Traits{}}
	if !unreadable(r.out.Findings) {
		r.resolveAll(h)
		r.resolveZones(h)
		r.http = h
		r.read(others, nil)
		r.readListening(h)
		slices.SortStableFunc(r.out.Findings, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	}
	if h.Findings = r.out.Findings; unreadable(h.Findings) {
		return &HTTP{Findings: h.Findings}
	}
	h.outer, h.RealIP = r, r.realIP
	for _, v := range r.out.Values {
		if inheritedByPaths(v.Annotation) {
			h.Values = append(h.Values, v)
		}
	}
	return h
}

// splitDefinitions returns the directives that only a text for all hosts can contain, which are the definitions of
// variables, zones and servers, and the others.
func splitDefinitions(directives []Directive) (definitions, others []Directive) {
	for _, d := range directives {
		if row := byName()[d.Name]; row != nil && row.Class == Works && len(row.Contexts) == 1 {
			definitions = append(definitions, d)
		} else {
			others = append(others, d)
		}
	}
	return definitions, others
}

// ReachesPaths reports whether servers inherit directives that also apply to the paths of Ingresses.
func (h *HTTP) ReachesPaths() bool {
	if h == nil || h.outer == nil {
		return false
	}
	s := h.Server("", "")
	return s.Program != nil || s.Substitution != nil || s.Access != nil || s.Limits != nil
}

var errOtherFile = errors.New("include would read another file, which does not exist here: write its content instead")
