package live

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/balancer"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
	"github.com/k8singress/k8singress/internal/pattern"
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
	regex *pattern.Pattern
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
	}{{c.Headers, &all.headers}, {c.Query, &all.query}, {c.Cookies, &all.cookies}} {
		for _, v := range group.from {
			match := valueMatch{name: v.Name, value: v.Value}
			if v.Regex {
				compiled, err := pattern.Compile(v.Value)
				if err != nil {
					return nil, fmt.Errorf("the pattern for %q: %w", v.Name, err)
				}
				match.regex = compiled
			}
			*group.to = append(*group.to, match)
		}
	}
	return all, nil
}

// hold says whether a request meets all of the conditions. A value that would take too long to search in meets none.
func (c *conditions) hold(r *message.Request, b *pattern.Budget) bool {
	return (c.method == "" || c.method == r.Method) && (c.session == nil || c.session.HasSession(valueOf(r.Cookie))) &&
		all(c.headers, headerOf(r), b) && all(c.query, r.QueryValue, b) && all(c.cookies, r.Cookie, b)
}

// lookup finds a value by its name.
type lookup func(name string) (string, bool)

// valueOf is a lookup of what is empty where it is not there.
func valueOf(find lookup) func(name string) string {
	return func(name string) string {
		value, _ := find(name)
		return value
	}
}

func all(matches []valueMatch, find lookup, b *pattern.Budget) bool {
	for i := range matches {
		m := &matches[i]
		got, ok := find(m.name)
		if !ok || m.regex == nil && got != m.value || m.regex != nil && m.regex.Search(got, b) != pattern.Yes {
			return false
		}
	}
	return true
}

// headerOf joins the fields of a name, as nginx does.
func headerOf(r *message.Request) lookup {
	return func(name string) (string, bool) {
		if strings.EqualFold(name, "Host") {
			return r.Host, true
		}
		return r.Fields.Joined(name)
	}
}
