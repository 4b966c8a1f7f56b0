package caddyfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// insideChain is a key in the options of Caddy's Caddyfile parser. It is set while the routes of an option `chain` are
// parsed, because the directive k8singress is not allowed there.
const insideChain = name + " chain"

// setChain parses the option chain:
//
//	chain <name> {
//		<directives...>
//	}
//
// The block is stored in d as a list of Caddy routes. Directives run in the order in which they are written, as in
// Caddy's directive route.
func setChain(d *draft, l *line) error {
	return define(&d.config.Chains, l.args[0], "directives", func() (json.RawMessage, error) {
		return chainRoutes(l.tokens)
	})
}

// chainRoutes returns the routes in the block of the option chain as JSON. It wraps the block in a site and lets Caddy
// parse the site, because directives need a Helper, which Caddy only creates for sites.
func chainRoutes(segment caddyfile.Segment) (json.RawMessage, error) {
	// The token before the opening brace is the name of the chain. Replace it with "route", so that the block becomes a
	// route directive.
	block := append(caddyfile.Segment{}, segment[1:]...)
	block[0].Text = "route"
	address := block[0]
	address.Text = "http://"
	site := caddyfile.ServerBlock{HasBraces: true, Keys: []caddyfile.Token{address},
		Segments: []caddyfile.Segment{block}}
	config, _, err := httpcaddyfile.ServerType{}.Setup([]caddyfile.ServerBlock{site}, map[string]any{insideChain: true})
	if err != nil {
		return nil, inChain(err)
	}
	var app caddyhttp.App
	if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
		return nil, fmt.Errorf("decoding its routes: %w", err)
	}
	for _, server := range app.Servers {
		return blockRoutes(server.Routes)
	}
	return nil, errNoDirective
}

var errNoDirective = errors.New("the chain has no directives: add one, or remove the chain")

// blockRoutes returns the routes of a route directive as JSON. site is the result of parsing a site that contains only
// this directive.
func blockRoutes(site caddyhttp.RouteList) (json.RawMessage, error) {
	if len(site) != 1 || len(site[0].HandlersRaw) != 1 || len(site[0].MatcherSetsRaw) > 0 {
		return nil,
			fmt.Errorf(
				"this version of Caddy is not supported: it parses a route block to %d routes instead of one route "+
					"without matchers",
				len(site))
	}
	var block struct {
		Handler string              `json:"handler"`
		Routes  caddyhttp.RouteList `json:"routes"`
	}
	if err := json.Unmarshal(site[0].HandlersRaw[0], &block); err != nil {
		return nil, fmt.Errorf("decoding its routes: %w", err)
	}
	if block.Handler != "subroute" {
		return nil,
			fmt.Errorf(
				"this version of Caddy is not supported: it parses a route block to the handler %s instead of subroute",
				block.Handler)
	}
	if len(block.Routes) == 0 {
		return nil, errNoDirective
	}
	return json.Marshal(block.Routes)
}

// wordings lists replacements for phrases in Caddy's error messages. Caddy mentions sites and route directives, but the
// user has written a chain.
var wordings = []struct {
	caddy *regexp.Regexp
	ours  string
}{
	{regexp.MustCompile(`^parsing caddyfile tokens for 'route': `), ""},
	{
		regexp.MustCompile(`(?s)(\w+) directive returned something other than an HTTP route or subroute: .* ` +
			`\(only handler directives can be used in routes\)`),
		"the directive $1 applies to a whole site and cannot be used in a chain",
	},
	{
		regexp.MustCompile(`cannot invoke named route '(.*)', which was not defined`),
		"a chain cannot invoke the named route &($1): define a snippet ($1) above the global options, and import " +
			"it in the chain",
	},
}

func inChain(err error) error {
	text := err.Error()
	for _, w := range wordings {
		text = w.caddy.ReplaceAllString(text, w.ours)
	}
	return errors.New(text)
}
