package live

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
)

// conditions are ir.Conditions, ready to be compared.
type conditions struct {
	method                  string
	headers, query, cookies []valueMatch
	// session is the backend that the session must be one of; nil asks for none.
	session *balancer.Backend
}

// valueMatch is an ir.ValueMatch, ready to be compared.
type valueMatch struct {
	name, value string
	// regex is nil where the value is compared as a whole.
	regex *regexp.Regexp
}

// newConditions returns nil for no conditions.
func newConditions(c *ir.Conditions, backend *balancer.Backend) (*conditions, error) {
	if c == nil {
		return nil, nil
	}
	all := &conditions{method: c.Method}
	if c.Session {
		all.session = backend
	}
	for _, group := range []struct {
		from []ir.ValueMatch
		to   *[]valueMatch
		name func(string) string
	}{{c.Headers, &all.headers, textproto.CanonicalMIMEHeaderKey}, {c.Query, &all.query, nil}, {c.Cookies, &all.cookies, nil}} {
		for _, v := range group.from {
			match := valueMatch{name: v.Name, value: v.Value}
			if group.name != nil {
				match.name = group.name(v.Name)
			}
			if v.Regex {
				compiled, err := regexp.Compile(v.Value)
				if err != nil {
					return nil, fmt.Errorf("the pattern for %q is no regular expression: %w", v.Name, err)
				}
				match.regex = compiled
			}
			*group.to = append(*group.to, match)
		}
	}
	return all, nil
}

// hold says whether a request meets all of the conditions.
func (c *conditions) hold(r *http.Request) bool {
	return (c.method == "" || c.method == r.Method) &&
		(c.session == nil || c.session.HasSession(func(name string) string { return cookieOf(r, name) })) &&
		all(c.headers, r, headerOf) && all(c.query, r, queryOf) && all(c.cookies, r, lookupCookie)
}

func all(matches []valueMatch, r *http.Request, value func(*http.Request, string) (string, bool)) bool {
	for i := range matches {
		m := &matches[i]
		got, ok := value(r, m.name)
		if !ok || m.regex == nil && got != m.value || m.regex != nil && !m.regex.MatchString(got) {
			return false
		}
	}
	return true
}

// headerOf joins the fields of a name, as nginx does.
func headerOf(r *http.Request, name string) (string, bool) {
	if name == "Host" {
		return r.Host, true
	}
	values := r.Header[name]
	if len(values) == 1 {
		return values[0], true
	}
	return strings.Join(values, ", "), len(values) > 0
}

// queryOf returns the first value of a parameter.
func queryOf(r *http.Request, name string) (string, bool) {
	for pair := range strings.SplitSeq(r.URL.RawQuery, "&") {
		key, value, _ := strings.Cut(pair, "=")
		if key, err := url.QueryUnescape(key); err != nil || key != name {
			continue
		}
		if value, err := url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", false
}

func lookupCookie(r *http.Request, name string) (string, bool) {
	c, err := r.Cookie(name)
	if err != nil {
		return "", false
	}
	return c.Value, true
}

// cookieOf returns the value of a cookie, or nothing. Of several with one name the first counts: that is the one with the
// longest path.
func cookieOf(r *http.Request, name string) string {
	value, _ := lookupCookie(r, name)
	return value
}
