package k8singress

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Rewrite)) }

// Rewrite changes the path or the host of a request for the backend. With a target it does so as ingress-nginx's rewrite-target
// does: the target is data, in which only $1 to $9 mean something, the groups of the regular expression that the Ingress path is.
// The query is kept; a target with a query of its own puts it first, and one that ends with "?" drops what the client sent.
type Rewrite struct {
	ir.URLRewrite

	path, query string
	// dropQuery says that what the client sent as a query goes no further.
	dropQuery bool
}

// CaddyModule returns the Caddy module information.
func (*Rewrite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_rewrite", New: func() caddy.Module { return new(Rewrite) }}
}

// Provision splits the target.
func (h *Rewrite) Provision(caddy.Context) error {
	h.path, h.query, _ = strings.Cut(h.Target, "?")
	h.dropQuery = strings.HasSuffix(h.Target, "?")
	h.query = strings.TrimSuffix(h.query, "?")
	return nil
}

var errDotSegments = errors.New("the rewritten path would leave the folder that the Ingress names")

// ServeHTTP changes the request and hands it on. A group of the client's path may not put dot segments into the new one:
// what was matched must be what the backend serves. Such a request gets 400.
func (h *Rewrite) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	request := live.FromContext(r.Context())
	if request == nil {
		return errNoRequest
	}
	if h.Host != "" {
		// Who the client is does not change with it.
		request.Client()
		r.Host = h.Host
	}
	path := live.CleanPath(r.URL.Path)
	switch {
	case h.Target != "":
		groups := request.Route.Submatch(path)
		r.URL.Path = withTarget(h.path, path, groups)
		r.URL.RawQuery, r.URL.ForceQuery = h.rawQuery(r.URL.RawQuery, expand(h.query, path, groups, url.QueryEscape)), false
	case h.Prefix != "":
		r.URL.Path = withPrefix(h.Prefix, request.Route, path)
	default:
		return next.ServeHTTP(w, r)
	}
	if r.URL.RawPath = ""; hasDotSegment(r.URL.Path) {
		return caddyhttp.Error(http.StatusBadRequest, errDotSegments)
	}
	r.RequestURI = r.URL.RequestURI()
	return next.ServeHTTP(w, r)
}

// withTarget replaces a path as a whole.
func withTarget(target, path string, groups []int) string {
	return rooted(expand(target, path, groups, func(s string) string { return s }))
}

// withPrefix replaces what a route of the type prefix has matched of a path. The paths of other routes stay as they are.
func withPrefix(prefix string, route *live.Route, path string) string {
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
func (h *Rewrite) rawQuery(client, own string) string {
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
		if n := 2 * int(template[i]-'0'); n+1 < len(groups) && groups[n] >= 0 {
			b.WriteString(escape(path[groups[n]:groups[n+1]]))
		}
	}
	return b.String()
}

func hasDotSegment(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

var (
	_ caddy.Provisioner           = (*Rewrite)(nil)
	_ caddyhttp.MiddlewareHandler = (*Rewrite)(nil)
)
