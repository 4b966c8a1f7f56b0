package filter

import (
	"net/http"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// rewrite changes the path or the host of a request before it is forwarded. Target works like ingress-nginx's
// rewrite-target: it is literal, except that $1 to $9, and the names of named groups, are replaced with the capture
// groups of the regular expression in the Ingress path. The client's query is appended to the query of Target. If
// Target ends with "?", the client's query is dropped.
type rewrite struct {
	ir.URLRewrite

	path, query string
	// dropQuery is true if the client's query is dropped.
	dropQuery bool
}

func newRewrite(of ir.URLRewrite) (Filter, error) {
	h := &rewrite{URLRewrite: of}
	h.path, h.query, _ = strings.Cut(h.Target, "?")
	h.dropQuery = strings.HasSuffix(h.Target, "?")
	h.query = strings.TrimSuffix(h.query, "?")
	return h, nil
}

// Apply rewrites the request. If a capture group would add a dot segment ("..") to the new path, it rejects the request
// with status 400, because the backend could then serve a path outside the configured one. It keeps the path if a
// program has ended the rewrites.
func (h *rewrite) Apply(x *exchange.Exchange) (bool, error) {
	if h.Host != "" {
		// Client caches the client's address, scheme and host, so it must be called before the host is changed.
		x.Client()
		x.Host = h.Host
	}
	path := message.CleanPath(x.Path)
	switch {
	case x.RewriteEnded:
		return false, nil
	case h.Target != "":
		groups := x.Route.Submatch(path)
		x.SetPath(withTarget(h.path, path, x.Route, groups))
		query := expand(h.query, path, x.Route, groups, nginx.EscapeArgument)
		x.Query, x.ForceQuery = joinQueries(x.Query, query, h.dropQuery), false
	case h.Prefix != "":
		x.SetPath(withPrefix(h.Prefix, x.Route, path))
	default:
		return false, nil
	}
	if message.HasDotSegment(x.Path) {
		return false, exchange.Fail(http.StatusBadRequest, exchange.ErrDotSegments)
	}
	return false, nil
}

// withTarget returns the path after rewriting it to target, with the capture groups of the route replaced.
func withTarget(target, path string, route *exchange.Route, groups []int) string {
	return rooted(expand(target, path, route, groups, func(s string) string { return s }))
}

// withPrefix returns the path with the matched prefix replaced by prefix. If the route is not a prefix route, it
// returns the path unchanged.
func withPrefix(prefix string, route *exchange.Route, path string) string {
	if route.Type != string(ir.MatchPrefix) {
		return path
	}
	return rooted(strings.TrimSuffix(prefix, "/") + strings.TrimPrefix(path, strings.TrimSuffix(route.Path, "/")))
}

// rooted returns the path with a leading slash.
func rooted(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// joinQueries joins the query of a rewrite target (own) and the query of the client, which is left out if drop is true.
// Both may be empty.
func joinQueries(client, own string, drop bool) string {
	switch {
	case drop || client == "":
		return own
	case own == "":
		return client
	}
	return own + "&" + client
}

// expand replaces the capture groups of the route in template: $1 to $9, $name and ${name}. groups holds the offsets of
// the groups in path, as in package regexp.
func expand(template, path string, route *exchange.Route, groups []int, escape func(string) string) string {
	if strings.IndexByte(template, '$') < 0 {
		return template
	}
	var b strings.Builder
	for {
		literal, rest, found := strings.Cut(template, "$")
		b.WriteString(literal)
		if !found {
			return b.String()
		}
		name, behind := cutGroup(rest)
		n := groupNumber(route, name)
		if template = behind; n > 0 {
			b.WriteString(escape(group(path, groups, n)))
		} else {
			b.WriteByte('$')
			template = rest
		}
	}
}

// cutGroup returns the name of a group at the start of text, and the text behind it. As in nginx, the name is one
// digit, a text in braces, or all letters, digits and underscores at the start.
func cutGroup(text string) (name, behind string) {
	if inner, braced := strings.CutPrefix(text, "{"); braced {
		name, behind, _ = strings.Cut(inner, "}")
		return name, behind
	}
	if text != "" && '0' <= text[0] && text[0] <= '9' {
		return text[:1], text[1:]
	}
	end := 0
	for end < len(text) && nginx.IsVariable(text[end:end+1]) {
		end++
	}
	return text[:end], text[end:]
}
