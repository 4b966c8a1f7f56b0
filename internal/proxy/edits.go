package proxy

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/nginx"
	"github.com/k8singress/k8singress/internal/pattern"
)

// newCookieEdit returns what the settings ask for.
func newCookieEdit(f *ir.Forwarding) (cookieEdit, error) {
	cookies := cookieEdit{}
	for name, rewrite := range map[string]ir.CookieRewrite{"path": f.CookiePath, "domain": f.CookieDomain} {
		if rewrite == (ir.CookieRewrite{}) {
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

// edit changes the fields of an answer of an endpoint on their way to the client.
func (r *request) edit(fields message.Fields) {
	if len(r.settings.cookies) == 0 {
		return
	}
	for i := range fields {
		if fields[i].Kind == message.SetCookie {
			fields[i].Value = r.settings.cookies.edit(fields[i].Value, r.Variable)
		}
	}
}

// cookieEdit rewrites attributes of a cookie by their names in lower case.
type cookieEdit map[string]*attribute

func (c cookieEdit) edit(cookie string, variable func(string) string) string {
	parts := strings.Split(cookie, ";")
	for i, part := range parts[1:] {
		name, value, _ := strings.Cut(part, "=")
		if a := c[strings.ToLower(strings.TrimSpace(name))]; a != nil {
			parts[1+i] = name + "=" + a.rewrite(strings.TrimSpace(value), variable)
		}
	}
	return strings.Join(parts, ";")
}

// attribute is an ir.CookieRewrite, ready for use.
type attribute struct {
	// whole says that From is all of the attribute, in any case and but for a dot in front; otherwise it is its beginning.
	whole bool
	// expression is nil for a text, which stands in from.
	expression *pattern.Pattern
	from, to   *nginx.Template
}

func newAttribute(name string, r ir.CookieRewrite) (*attribute, error) {
	a, err := &attribute{whole: name == "domain"}, error(nil)
	if expression, ok := strings.CutPrefix(r.From, "~"); ok {
		expression, anyCase := strings.CutPrefix(expression, "*")
		compile := pattern.Compile
		if anyCase || a.whole {
			compile = pattern.CompileFold
		}
		if a.expression, err = compile(expression); err != nil {
			return nil, err
		}
		a.to, err = nginx.ParseTemplate(r.To, nginx.Groups...)
		return a, err
	}
	if a.from, err = nginx.ParseTemplate(r.From); err != nil {
		return nil, err
	}
	a.to, err = nginx.ParseTemplate(r.To)
	return a, err
}

// rewrite returns the new value of the attribute, which is the old one if that does not match, or if the value of a variable
// would end the attribute.
func (a *attribute) rewrite(value string, variable func(string) string) string {
	next := value
	switch {
	case a.expression != nil:
		next = a.replace(value, variable)
	case a.whole:
		domain := strings.TrimPrefix(value, ".")
		if strings.EqualFold(domain, strings.TrimPrefix(a.from.Expand(variable), ".")) {
			next = value[:len(value)-len(domain)] + strings.TrimPrefix(a.to.Expand(variable), ".")
		}
	default:
		if rest, ok := strings.CutPrefix(value, a.from.Expand(variable)); ok {
			next = a.to.Expand(variable) + rest
		}
	}
	if strings.ContainsFunc(next, func(r rune) bool { return r == ';' || nginx.IsControl(r) }) {
		return value
	}
	return next
}

func (a *attribute) replace(value string, variable func(string) string) string {
	found := a.expression.Submatch(value)
	if found == nil {
		return value
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
	})
}
