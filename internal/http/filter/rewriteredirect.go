package filter

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// rewriteRedirect redirects requests to an absolute URL. As in ingress-nginx, it is used if the rewrite-target is an
// absolute URL.
type rewriteRedirect struct {
	path, query *nginx.Template
	// hasQuery is true if the target URL has a query. dropQuery is true if the client's query is dropped.
	hasQuery, dropQuery bool
	// behindHost is the variable that directly follows the host in the target URL. It is empty if there is no such
	// variable.
	behindHost string
}

// behindHost matches a target URL in which a variable directly follows the host, as in https://example.com$1.
var behindHost = regexp.MustCompile(`^[^/]*//[^/?]*[A-Za-z0-9]\$(\w+|\{\w+\})([/?$]|$)`)

// variableAfterHost returns the variable that directly follows the host in a target URL. It returns "" if there is no
// such variable. If the variable is a capture group, its value must not extend the host.
func variableAfterHost(target string) string {
	if found := behindHost.FindStringSubmatch(target); found != nil {
		return strings.Trim(found[1], "{}")
	}
	return ""
}

func newRewriteRedirect(of ir.RewriteRedirect) (Filter, error) {
	if !strings.Contains(of.Target, "://") || !httpguts.ValidHeaderFieldValue(of.Target) {
		return nil, errors.New("the target is not a URL")
	}
	h := &rewriteRedirect{dropQuery: strings.HasSuffix(of.Target, "?")}
	path, query, _ := strings.Cut(of.Target, "?")
	query = strings.TrimSuffix(query, "?")
	h.hasQuery = query != ""
	h.behindHost = variableAfterHost(path)
	var err error
	if h.path, err = exchange.ParseTemplate(path, nginx.Groups...); err != nil {
		return nil, err
	}
	h.query, err = exchange.ParseTemplate(query, nginx.Groups...)
	return h, err
}

var errOtherHost = errors.New("the redirect would lead to a host that the Ingress does not name")

// Apply sends the redirect. It rejects the request with status 400 if text from the client's path would extend the host
// of the target URL, or contains characters that are not allowed in a header. It does nothing if a program has ended
// the rewrites.
func (h *rewriteRedirect) Apply(x *exchange.Exchange) (bool, error) {
	if x.RewriteEnded {
		return false, nil
	}
	path := message.CleanPath(x.Path)
	groups := x.Route.Submatch(path)
	if n := groupNumber(x.Route, h.behindHost); n > 0 {
		if rest := group(path, groups, n); rest != "" && rest[0] != '/' {
			return false, exchange.Fail(http.StatusBadRequest, errOtherHost)
		}
	}
	location := h.expand(h.path, x, path, groups, escapePath)
	if h.hasQuery {
		location += "?" + h.expand(h.query, x, path, groups, nginx.EscapeArgument)
	}
	switch {
	case h.dropQuery || x.Query == "":
	case h.hasQuery:
		location += "&" + x.Query
	case !strings.Contains(location, "?"):
		// Append the client's query, unless the location already has a query. Such a query comes from a variable such
		// as $request_uri, and contains the client's query already.
		location += "?" + x.Query
	}
	if err := x.VariablesFailed(); err != nil {
		return false, err
	}
	if !httpguts.ValidHeaderFieldValue(location) {
		return false, exchange.Fail(http.StatusBadRequest,
			errors.New("the redirect would contain a character that is not allowed in a header"))
	}
	return true, x.Respond(http.StatusFound, "", message.Location.Field(location))
}

// expand expands a template. It escapes capture groups and $uri, because they come from the decoded path.
func (h *rewriteRedirect) expand(t *nginx.Template, x *exchange.Exchange, path string, groups []int,
	escape func(string) string) string {
	return t.Expand(func(name string) string {
		if n := groupNumber(x.Route, name); n > 0 {
			return escape(group(path, groups, n))
		}
		if name == "uri" {
			return escape(path)
		}
		return x.Variable(name)
	})
}

func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }
