package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// inNginxWords maps the names of handlers that come from snippets to functions that print their settings as nginx
// would write them.
var inNginxWords = map[string]func(n *nginxText, settings json.RawMessage) error{
	"k8singress_access_rules": printing((*nginxText).accessRules),
	"k8singress_internal":     printing(func(n *nginxText, _ *ir.Internal) { n.line("internal") }),
	"k8singress_program":      printing((*nginxText).program),
	"k8singress_substitution": printing((*nginxText).substitution),
	"k8singress_try_files":    printing((*nginxText).tryFiles),
	"k8singress_zone_limits":  printing((*nginxText).zoneLimits),
}

func printing[T any](write func(*nginxText, *T)) func(*nginxText, json.RawMessage) error {
	return func(n *nginxText, settings json.RawMessage) error {
		var of T
		err := json.Unmarshal(settings, &of)
		if err == nil {
			write(n, &of)
		}
		return err
	}
}

// nginxText prints nginx configuration.
type nginxText struct {
	strings.Builder
	depth int
	// unlogged is true if the level outside of conditions has "access_log off".
	unlogged bool
}

// line prints a directive. Arguments are quoted if nginx needs quotes.
func (n *nginxText) line(name string, arguments ...string) {
	n.WriteString(indent(n.depth) + name)
	for _, argument := range arguments {
		n.WriteString(" " + quoted(argument))
	}
	n.WriteString(";\n")
}

// lines prints a directive for each of the arguments.
func (n *nginxText) lines(name string, arguments []string) {
	for _, argument := range arguments {
		n.line(name, argument)
	}
}

// lineIf prints a directive if the condition is true.
func (n *nginxText) lineIf(condition bool, name string, arguments ...string) {
	if condition {
		n.line(name, arguments...)
	}
}

// quoted returns an argument as nginx reads it. Control characters are written as Go writes them, because the text is
// for terminals.
func quoted(argument string) string {
	if argument != "" && !strings.ContainsFunc(argument, func(r rune) bool {
		return strings.ContainsRune(" ;{}\"'#\\", r) || !strconv.IsPrint(r)
	}) {
		return argument
	}
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range argument {
		switch {
		case r == '"':
			b.WriteString(`\"`)
		case r == '\\' && !(i+1 < len(argument) && strings.IndexByte("\"'\\trn", argument[i+1]) < 0):
			b.WriteString(`\\`)
		case strconv.IsPrint(r):
			b.WriteRune(r)
		default:
			escaped := strconv.QuoteRune(r)
			b.WriteString(escaped[1 : len(escaped)-1])
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (n *nginxText) accessRules(of *ir.AccessRules) {
	n.rules(of.Rules)
	if limit := of.LimitExcept; limit != nil && len(limit.Rules) > 0 {
		n.limitExcept(limit)
	}
}

func (n *nginxText) limitExcept(of *ir.LimitExcept) {
	fmt.Fprintf(n, "%slimit_except %s {\n", indent(n.depth), strings.Join(of.Methods, " "))
	n.depth++
	n.rules(of.Rules)
	n.depth--
	n.WriteString(indent(n.depth) + "}\n")
}

func (n *nginxText) rules(all []ir.AccessRule) {
	for _, rule := range all {
		name := "deny"
		if rule.Allow {
			name = "allow"
		}
		n.line(name, rule.Network)
	}
}

func (n *nginxText) substitution(of *ir.Substitution) {
	for _, pair := range of.Pairs {
		n.line("sub_filter", pair.From, pair.To)
	}
	n.lineIf(of.Repeat, "sub_filter_once", "off")
	n.lineIf(of.Types != nil, "sub_filter_types", of.Types...)
	n.lineIf(of.KeepLastModified, "sub_filter_last_modified", "on")
}

func (n *nginxText) zoneLimits(of *ir.ZoneLimits) {
	for i := range of.Requests {
		l := &of.Requests[i]
		arguments := []string{"zone=" + l.Zone.Name}
		if l.Burst > 0 {
			arguments = append(arguments, "burst="+strconv.Itoa(l.Burst))
		}
		switch {
		case l.Burst > 0 && l.Undelayed == l.Burst:
			arguments = append(arguments, "nodelay")
		case l.Undelayed > 0:
			arguments = append(arguments, "delay="+strconv.Itoa(l.Undelayed))
		}
		n.line("limit_req", arguments...)
	}
	n.lineIf(of.Status > 0, "limit_req_status", strconv.Itoa(of.Status))
	n.lineIf(of.DryRun != nil && *of.DryRun, "limit_req_dry_run", "on")
	for _, l := range of.Connections {
		n.line("limit_conn", l.Zone.Name, strconv.Itoa(l.Max))
	}
	n.lineIf(of.ConnectionsStatus > 0, "limit_conn_status", strconv.Itoa(of.ConnectionsStatus))
	n.lineIf(of.ConnectionsDryRun != nil && *of.ConnectionsDryRun, "limit_conn_dry_run", "on")
}

func (n *nginxText) program(of *ir.Program) {
	n.unlogged = of.Unlogged
	if of.LimitExcept != nil {
		n.limitExcept(of.LimitExcept)
	}
	n.steps(of.Steps)
	n.directives(&of.Directives)
	n.lineIf(of.RelativeRedirects, "absolute_redirect", "off")
}

func (n *nginxText) steps(steps []ir.Step) {
	for i := range steps {
		switch s := &steps[i]; {
		case s.Set != nil:
			n.line("set", "$"+s.Set.Name, s.Set.Value)
		case s.If != nil:
			n.branch(s.If)
		case s.Return != nil:
			n.response(s.Return)
		case s.Rewrite != nil:
			n.rewrite(s.Rewrite)
		case s.Break:
			n.line("break")
		}
	}
}

func (n *nginxText) branch(of *ir.If) {
	condition := "$" + of.Variable
	if of.Operator != ir.IsTrue {
		condition += " " + string(of.Operator) + " " + quoted(of.Value)
	}
	fmt.Fprintf(n, "%sif (%s) {\n", indent(n.depth), condition)
	n.depth++
	n.steps(of.Steps)
	if of.Directives != nil {
		n.directives(of.Directives)
		n.lineIf(n.unlogged && !of.Directives.Unlogged, "access_log", "on")
	}
	n.depth--
	n.WriteString(indent(n.depth) + "}\n")
}

func (n *nginxText) response(of *ir.Return) {
	arguments := []string{strconv.Itoa(of.Status)}
	if of.HasText || of.Text != "" {
		arguments = append(arguments, of.Text)
	}
	n.line("return", arguments...)
}

func (n *nginxText) rewrite(of *ir.Rewrite) {
	arguments := []string{of.Pattern, of.Target}
	if of.Flag != ir.NoFlag {
		arguments = append(arguments, string(of.Flag))
	}
	n.line("rewrite", arguments...)
}

// directives prints the directives of a level, including the directives that it inherits.
func (n *nginxText) directives(of *ir.Directives) {
	for i := range of.InputHeaders {
		n.moreHeaders("_input", &of.InputHeaders[i])
	}
	for _, header := range of.EndpointHeaders {
		n.line("proxy_set_header", header.Name, header.Value)
	}
	n.lines("proxy_hide_header", of.Hide)
	n.lines("proxy_pass_header", of.Pass)
	for _, c := range of.CookieFlags {
		n.line("proxy_cookie_flags", append([]string{c.Cookie}, c.Flags...)...)
	}
	n.lineIf(of.CookieFlags != nil && len(of.CookieFlags) == 0, "proxy_cookie_flags", "off")
	for _, header := range of.AddHeaders {
		arguments := []string{header.Name, header.Value}
		if header.Always {
			arguments = append(arguments, "always")
		}
		n.line("add_header", arguments...)
	}
	if of.Expires != nil {
		n.expires(of.Expires)
	}
	for i := range of.MoreHeaders {
		n.moreHeaders("", &of.MoreHeaders[i])
	}
	for _, variable := range of.AuthVariables {
		n.line("auth_request_set", "$"+variable.Name, variable.Value)
	}
	n.errors(&of.Errors)
	n.lineIf(of.DefaultType != "", "default_type", of.DefaultType)
	n.lineIf(of.Unlogged, "access_log", "off")
}

func (n *nginxText) errors(of *ir.ErrorHandling) {
	for i := range of.Pages {
		page := &of.Pages[i]
		arguments := strings.Fields(strings.Trim(fmt.Sprint(page.Statuses), "[]"))
		switch {
		case page.AnyStatus:
			arguments = append(arguments, "=")
		case page.Status != 0:
			arguments = append(arguments, "="+strconv.Itoa(page.Status))
		}
		n.line("error_page", append(arguments, page.Target)...)
	}
	n.flag("proxy_intercept_errors", of.Intercept)
	n.flag("recursive_error_pages", of.Recursive)
}

// flag prints a directive unless its value is inherited.
func (n *nginxText) flag(name string, on *bool) {
	if on != nil {
		n.line(name, map[bool]string{true: "on", false: "off"}[*on])
	}
}

func (n *nginxText) tryFiles(of *ir.TryFiles) {
	target := of.Target
	if target == "" {
		target = "=" + strconv.Itoa(of.Status)
	}
	n.line("try_files", "$uri", target)
}

// moreHeaders prints directives of the module headers-more. kind is "_input" for request headers.
func (n *nginxText) moreHeaders(kind string, of *ir.MoreHeaders) {
	var flags []string
	if of.IfPresent {
		flags = append(flags, "-r")
	}
	if of.Statuses != nil {
		flags = append(flags, "-s", strings.Trim(fmt.Sprint(of.Statuses), "[]"))
	}
	if of.Types != nil {
		flags = append(flags, "-t", strings.Join(of.Types, " "))
	}
	var set []string
	for _, header := range of.Set {
		set = append(set, strings.TrimRight(header.Name+": "+header.Value, " "))
	}
	n.lineIf(set != nil, "more_set"+kind+"_headers", slices.Concat(flags, set)...)
	n.lineIf(of.Clear != nil, "more_clear"+kind+"_headers", slices.Concat(flags, of.Clear)...)
}

func (n *nginxText) expires(of *ir.Expires) {
	argument := strconv.FormatInt(of.Seconds, 10)
	switch {
	case of.Template != "":
		argument = of.Template
	case of.Mode == ir.ExpiresDaily:
		argument = "@" + argument
	case of.Mode != ir.ExpiresIn:
		argument = string(of.Mode)
	}
	if of.Modified {
		n.line("expires", "modified", argument)
	} else {
		n.line("expires", argument)
	}
}
