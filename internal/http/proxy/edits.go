package proxy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/pattern"
)

// edits are the configured changes to response headers. A nil field means no change.
type edits struct {
	cookies  cookieEdit
	redirect *attribute
}

func newEdits(f *ir.Forwarding) (e edits, err error) {
	if e.cookies, err = newCookieEdit(f); err != nil || f.Redirect == (ir.ResponseRewrite{}) {
		return e, err
	}
	if e.redirect, err = newAttribute("location", f.Redirect); err != nil {
		err = fmt.Errorf("redirect: %w", err)
	}
	return e, err
}

// newCookieEdit returns the configured changes to cookies.
func newCookieEdit(f *ir.Forwarding) (cookieEdit, error) {
	cookies := cookieEdit{}
	for name, rewrite := range map[string]ir.ResponseRewrite{"path": f.CookiePath, "domain": f.CookieDomain} {
		if rewrite == (ir.ResponseRewrite{}) {
			continue
		}
		attribute, err := newAttribute(name, rewrite)
		if err != nil {
			return nil, fmt.Errorf("cookie_%s: %w", name, err)
		}
		cookies[name] = attribute
	}
	return cookies, nil
}

// allowance limits the rewriting of header values in one response: the number of rewritten values, and their total size
// in bytes. Without these limits, the author of an Ingress could overload the controller with an endpoint that sends as
// many cookie attributes as fit into a response head. The controller would have to apply a regular expression to each
// attribute, and might insert a long variable, which the client controls, into each.
type allowance struct{ attributes, bytes int }

const (
	maxRewritten      = 128
	maxRewrittenBytes = 256 << 10
)

// has reports whether one more header value of the response may be rewritten. If so, it also decrements the number of
// values that may still be rewritten.
func (a *allowance) has() bool {
	a.attributes--
	return a.attributes >= 0 && a.bytes >= 0
}

// take subtracts the size of a rewritten value from the allowance and returns the value.
func (a *allowance) take(value string) string {
	a.bytes -= len(value)
	return value
}

// edit rewrites the header fields of an endpoint's response before it is sent to the client. Once a limit of allowance
// is reached, the remaining values stay unchanged.
func (r *request) edit(fields message.Fields) {
	e := &r.settings.edits
	if len(e.cookies) == 0 && e.redirect == nil {
		return
	}
	left := &allowance{maxRewritten, maxRewrittenBytes}
	for i := range fields {
		field := &fields[i]
		switch {
		case field.Kind == message.SetCookie:
			if len(e.cookies) > 0 {
				field.Value = e.cookies.edit(field.Value, left, r.Variable)
			}
		case e.redirect == nil || field.Kind != message.Location &&
			!strings.EqualFold(field.Name, "Refresh") || !left.has():
		case field.Kind == message.Location:
			field.Value = left.take(e.redirect.rewriteURL(field.Value, r.Variable))
		default:
			field.Value = left.take(e.redirect.rewriteRefresh(field.Value, r.Variable))
		}
	}
}

// rewriteURL rewrites value, the URL of a redirect. It returns value unchanged if the new URL contains control
// characters, which are not valid in a header field.
func (a *attribute) rewriteURL(value string, variable func(string) string) string {
	next, _ := a.replaced(value, variable)
	if strings.ContainsFunc(next, nginx.IsControl) {
		return value
	}
	return next
}

// rewriteRefresh rewrites the value of a Refresh header field. It applies rewriteURL to the URL that follows "url=".
func (a *attribute) rewriteRefresh(value string, variable func(string) string) string {
	const mark = "url="
	i := strings.Index(strings.ToLower(value), mark)
	if i < 0 || i+len(mark) > len(value) {
		return value
	}
	i += len(mark)
	return value[:i] + a.rewriteURL(value[i:], variable)
}

// cookieEdit holds the changes to cookie attributes, keyed by the attribute's name in lower case.
type cookieEdit map[string]*attribute

func (c cookieEdit) edit(cookie string, left *allowance, variable func(string) string) string {
	parts := strings.Split(cookie, ";")
	for i, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		if a := c[strings.ToLower(strings.TrimSpace(name))]; a != nil && left.has() {
			parts[1+i] = name + "=" + left.take(a.rewrite(strings.TrimSpace(value), variable))
		}
	}
	return strings.Join(parts, ";")
}

// attribute is a parsed ir.ResponseRewrite, which rewrites a cookie attribute or the URL of a redirect.
type attribute struct {
	// whole is true if the old value must match completely, ignoring case and a leading dot. If it is false, only the
	// beginning of the old value must match.
	whole bool
	// expression is the regular expression to match. If it is nil, the value is compared with the string in the field
	// from.
	expression *pattern.Pattern
	from, to   *nginx.Template
	// attributes are added behind a value that matches.
	attributes string
}

func newAttribute(name string, r ir.ResponseRewrite) (*attribute, error) {
	a, err := &attribute{whole: name == "domain", attributes: r.Attributes}, error(nil)
	if expression, ok := strings.CutPrefix(r.From, "~"); ok {
		expression, anyCase := strings.CutPrefix(expression, "*")
		compile := pattern.Compile
		if anyCase || a.whole {
			compile = pattern.CompileFold
		}
		if a.expression, err = compile(expression); err != nil {
			return nil, err
		}
		a.to, err = exchange.ParseTemplate(r.To, nginx.Groups...)
		return a, err
	}
	if a.from, err = exchange.ParseTemplate(r.From); err != nil {
		return nil, err
	}
	a.to, err = exchange.ParseTemplate(r.To)
	return a, err
}

// rewrite returns the new value of a cookie attribute, with the attributes that follow it. It returns the old value if
// the value does not match, and keeps it if a variable inserts a character that would end the attribute.
func (a *attribute) rewrite(value string, variable func(string) string) string {
	next, matches := a.replaced(value, variable)
	switch {
	case !matches:
		return value
	case strings.ContainsFunc(next, func(r rune) bool { return r == ';' || nginx.IsControl(r) }):
		next = value
	}
	return next + a.attributes
}

// replaced returns the value after the replacement, and whether the old value matches. It does not check whether the
// new value contains characters that are not allowed in the header field.
func (a *attribute) replaced(value string, variable func(string) string) (next string, matches bool) {
	switch {
	case a.expression != nil:
		return a.replace(value, variable)
	case a.whole:
		domain := strings.TrimPrefix(value, ".")
		if strings.EqualFold(domain, strings.TrimPrefix(a.from.Expand(variable), ".")) {
			return value[:len(value)-len(domain)] + strings.TrimPrefix(a.to.Expand(variable), "."), true
		}
	default:
		if rest, ok := strings.CutPrefix(value, a.from.Expand(variable)); ok {
			return a.to.Expand(variable) + rest, true
		}
	}
	return value, false
}

func (a *attribute) replace(value string, variable func(string) string) (next string, matches bool) {
	found := a.expression.Submatch(value)
	if found == nil {
		return value, false
	}
	return a.to.Expand(func(name string) string {
		n, err := strconv.Atoi(name)
		switch {
		case err != nil:
			return variable(name)
		case 2*n < len(found) && found[2*n] >= 0:
			return value[found[2*n]:found[2*n+1]]
		}
		return ""
	}), true
}
