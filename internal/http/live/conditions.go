package live

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/pattern"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
)

// conditions is the compiled form of ir.Conditions, which restrict a route to requests with certain methods, header
// fields, query parameters or cookies.
type conditions struct {
	method                  string
	headers, query, cookies []valueMatch
	// If session is not nil, the request must have a valid session cookie (session affinity) for this backend.
	session *balancer.Backend
}

// valueMatch is the compiled form of ir.ValueMatch, which matches one header field, query parameter or cookie.
type valueMatch struct {
	name, value string
	// regex is the compiled form of value if value is a regular expression. Otherwise regex is nil, and value must
	// match exactly.
	regex *pattern.Pattern
}

// newConditions compiles the conditions of a route. It returns nil if c is nil.
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

// hold reports whether a request meets all conditions. A condition with a regular expression is not met if matching
// would exceed the time budget b.
func (c *conditions) hold(r *message.Request, b *pattern.Budget) bool {
	return (c.method == "" || c.method == r.Method) && (c.session == nil || c.session.HasSession(valueOf(r.Cookie))) &&
		all(c.headers, headerOf(r), b) && all(c.query, r.QueryValue, b) && all(c.cookies, r.Cookie, b)
}

// lookup returns the value of the header field, query parameter or cookie with this name, and whether it exists.
type lookup func(name string) (string, bool)

// valueOf wraps find in a function that returns only the value. It returns an empty string if the value does not exist.
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

// headerOf returns a lookup function for the header fields of a request. Like nginx, it joins fields with the same
// name.
func headerOf(r *message.Request) lookup {
	return func(name string) (string, bool) {
		if strings.EqualFold(name, "Host") {
			return r.Host, true
		}
		return r.Fields.Joined(name)
	}
}
