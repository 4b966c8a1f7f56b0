package filter

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/k8singress/k8singress/internal/exchange"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/message"
)

// rewrite changes the path or the host of a request for the backend. With a target it does so as ingress-nginx's rewrite-target
// does: the target is data, in which only $1 to $9 mean something, the groups of the regular expression that the Ingress path is.
// The query is kept; a target with a query of its own puts it first, and one that ends with "?" drops what the client sent.
type rewrite struct {
	ir.URLRewrite

	path, query string
	// dropQuery says that what the client sent as a query goes no further.
	dropQuery bool
}

func newRewrite(of ir.URLRewrite) (Filter, error) {
	h := &rewrite{URLRewrite: of}
	h.path, h.query, _ = strings.Cut(h.Target, "?")
	h.dropQuery = strings.HasSuffix(h.Target, "?")
	h.query = strings.TrimSuffix(h.query, "?")
	return h, nil
}

var errDotSegments = errors.New("the rewritten path would leave the folder that the Ingress names")

// Apply changes the request. A group of the client's path may not put dot segments into the new one: what was matched must be what
// the backend serves. Such a request gets 400.
func (h *rewrite) Apply(x *exchange.Exchange) (bool, error) {
	if h.Host != "" {
		// Who the client is does not change with it.
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

// withTarget replaces a path as a whole.
func withTarget(target, path string, groups []int) string {
	return rooted(expand(target, path, groups, func(s string) string { return s }))
}

// withPrefix replaces what a route of the type prefix has matched of a path. The paths of other routes stay as they are.
func withPrefix(prefix string, route *exchange.Route, path string) string {
	if route.Type != string(ir.MatchPrefix) {
		return path
	}
	return rooted(strings.TrimSuffix(prefix, "/") + strings.TrimPrefix(path, strings.TrimSuffix(route.Path, "/")))
}

// rooted returns a path that begins with a slash.
func rooted(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + path
}

// rawQuery joins the query of the target, in which groups may have left nothing, and that of the client.
func (h *rewrite) rawQuery(client, own string) string {
	switch {
	case h.dropQuery || client == "":
		return own
	case own == "":
		return client
	}
	return own + "&" + client
}

// expand writes the groups of a match in place of $1 to $9. groups are offsets into path, as regexp gives them.
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
