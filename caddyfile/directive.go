package caddyfile

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() {
	httpcaddyfile.RegisterDirective(name, parseDirective)
	httpcaddyfile.RegisterDirectiveOrder(name, httpcaddyfile.Before, "reverse_proxy")
}

// handler is the JSON configuration of the HTTP handler k8singress.
type handler struct {
	Handler  string `json:"handler"`
	PassThru bool   `json:"pass_thru,omitempty"`
}

// parseDirective parses the directive k8singress:
//
//	k8singress [<matcher>] {
//		pass_thru
//	}
//
// It returns a route whose handler serves the Ingresses.
func parseDirective(h httpcaddyfile.Helper) ([]httpcaddyfile.ConfigValue, error) {
	h.Next()
	if h.Option(insideChain) != nil {
		return nil, h.Errf("the directive %s cannot be used in a chain, because chains run inside this directive", name)
	}
	if h.Option(name) == nil {
		return nil,
			h.Errf(
				"the directive %s needs the global option of the same name: add %s to the block at the top of the file",
				name, name)
	}
	matcher, err := h.ExtractMatcherSet()
	if err != nil {
		return nil, err
	}
	parsed, err := parseHandler(h)
	if err != nil {
		return nil, err
	}
	route := caddyhttp.Route{HandlersRaw: []json.RawMessage{h.JSON(parsed)}}
	if matcher != nil {
		route.MatcherSetsRaw = []caddy.ModuleMap{matcher}
	}
	return []httpcaddyfile.ConfigValue{{Class: "route", Value: route}}, nil
}

func parseHandler(h httpcaddyfile.Helper) (*handler, error) {
	parsed := &handler{Handler: name}
	h.Next()
	if h.NextArg() {
		return nil, h.Errf("the directive %s takes no argument except a matcher; found %q", name, h.Val())
	}
	for h.NextBlock(0) {
		switch {
		case h.Val() != "pass_thru":
			return nil, h.Errf("the directive %s has no option %q: its only option is pass_thru", name, h.Val())
		case parsed.PassThru:
			return nil, h.Err("pass_thru is set twice: remove one of the two lines")
		case h.NextArg():
			return nil, h.Errf("pass_thru takes no argument; found %q", h.Val())
		}
		parsed.PassThru = true
	}
	return parsed, nil
}
