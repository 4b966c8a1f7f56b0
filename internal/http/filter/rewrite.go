package filter

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// rewrite changes the path or the host of a request for the backend. Target has the semantics of ingress-nginx's
// rewrite-target. It is literal, except that $1 to $9 are replaced by the groups of the regular expression in the
// Ingress path. The client's query is kept. If the target has a query, it comes first. If the target ends with "?", the
// client's query is dropped.
type rewrite struct {
	ir.URLRewrite

	path, query string
	// dropQuery drops the client's query.
	dropQuery bool
}

func newRewrite(of ir.URLRewrite) (Filter, error) {
	h := &rewrite{URLRewrite: of}
	h.path, h.query, _ = strings.Cut(h.Target, "?")
	h.dropQuery = strings.HasSuffix(h.Target, "?")
	h.query = strings.TrimSuffix(h.query, "?")
	return h, nil
}

var errDotSegments = errors.New(
	"the rewritten path contains a dot segment, with which it could leave the path that the Ingress configures")

// Apply rewrites the request. A group from the client's path must not add dot segments to the new path, because the
// backend could then serve a path that did not match. Such a request gets 400.
func (h *rewrite) Apply(x *exchange.Exchange) (bool, error) {
	if h.Host != "" {
		// The client's address and protocol are determined before the host changes.
		x.Client()
		x.Host = h.Host
	}
	path := message.CleanPath(x.Path)
	switch {
	case h.Target != "":
		groups := x.Route.Submatch(path)
		x.SetPath(withTarget(h.path, path, groups))
		x.Query, x.ForceQuery = h.rawQuery(x.Query, expand(h.query, path, groups, url.QueryEscape)), false
	case h.Prefix != "":
		x.SetPath(withPrefix(h.Prefix, x.Route, path))
	default:
		return false, nil
	}
	if message.HasDotSegment(x.Path) {
		return false, exchange.Fail(http.StatusBadRequest, errDotSegments)
	}
	return false, nil
}

// withTarget replaces the whole path.
func withTarget(target, path string, groups []int) string {
	return rooted(expand(target, path, groups, func(s string) string { return s }))
}

// withPrefix replaces the part of the path that a prefix route matched. The paths of other routes stay unchanged.
func withPrefix(prefix string, route *exchange.Route, path string) string {
	if route.Type != string(ir.MatchPrefix) {
		return path
	}
	return rooted(strings.TrimSuffix(prefix, "/") + strings.TrimPrefix(path, strings.TrimSuffix(route.Path, "/")))
}

// rooted adds a leading slash to a path that has none.
func rooted(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// rawQuery joins the query of the target, which may be empty after the groups are replaced, and the query of the
// client.
func (h *rewrite) rawQuery(client, own string) string {
	switch {
	case h.dropQuery || client == "":
		return own
	case own == "":
		return client
	}
	return own + "&" + client
}

// expand replaces $1 to $9 by the groups of a match. groups are offsets into path, as in package regexp.
func expand(template, path string, groups []int, escape func(string) string) string {
	if strings.IndexByte(template, '$') < 0 {
		return template
	}
	var b strings.Builder
	for i := 0; i < len(template); i++ {
		if template[i] != '$' || i+1 == len(template) || template[i+1] < '1' || template[i+1] > '9' {
			b.WriteByte(template[i])
			continue
		}
		i++
		b.WriteString(escape(group(path, groups, int(template[i]-'0'))))
	}
	return b.String()
}
