package filter

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"golang.org/x/net/http/httpguts"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// redirect redirects requests to another URL, like the RequestRedirect filter of Gateway API. Its settings contain no
// variables.
type redirect struct{ ir.Redirect }

func newRedirect(of ir.Redirect) (Filter, error) {
	if of.Status < 300 || of.Status > 399 {
		return nil, errors.New("status_code is not between 300 and 399")
	}
	if !httpguts.ValidHeaderFieldValue(of.URL) {
		return nil, fmt.Errorf("the URL %q contains characters that are not allowed in a header", of.URL)
	}
	return &redirect{of}, nil
}

// Apply sends the redirect, unless a program has ended the rewrites.
func (h *redirect) Apply(x *exchange.Exchange) (bool, error) {
	if x.RewriteEnded {
		return false, nil
	}
	return true, x.Respond(h.Status, "", message.Location.Field(h.location(x)))
}

func (h *redirect) location(x *exchange.Exchange) string {
	if h.URL != "" {
		return h.URL
	}
	to, path := &url.URL{RawQuery: x.Query}, message.CleanPath(x.Path)
	switch {
	case h.Target != "":
		to.Path = withTarget(h.Target, path, x.Route, x.Route.Submatch(path))
	case h.Prefix != "":
		to.Path = withPrefix(h.Prefix, x.Route, path)
	default:
		to.Path, to.RawPath = rooted(x.Path), x.EscapedPath
	}
	client := x.Client()
	to.Scheme = cmp.Or(h.Scheme, client.Proto)
	to.Host = cmp.Or(h.Host, client.Hostname())
	port := client.Port
	if h.Scheme != "" {
		port = ""
	}
	if h.Port != 0 {
		port = strconv.Itoa(h.Port)
	}
	if port != "" && port != defaultPorts[to.Scheme] {
		to.Host += ":" + port
	}
	return to.String()
}

// defaultPorts contains the port that can be omitted in a URL, by scheme.
var defaultPorts = map[string]string{"http": "80", "https": "443"}
