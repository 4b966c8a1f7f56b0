package caddyfile

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/model/option"
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
	given, known := option.Given{}, map[string]*bool{"pass_thru": &parsed.PassThru}
	for h.NextBlock(0) {
		set, err := option.Select(given, known, "the directive "+name, h.Val(), removeOne)
		if err != nil {
			return nil, h.WrapErr(err)
		}
		if h.NextArg() {
			return nil, h.Errf("pass_thru takes no argument; found %q", h.Val())
		}
		*set = true
	}
	return parsed, nil
}
