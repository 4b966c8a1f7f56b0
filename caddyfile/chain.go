package caddyfile

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// insideChain is the option by which a directive finds that it stands in a chain.
const insideChain = name + " chain"

// setChain reads
//
//	chain <name> {
//		<directives...>
//	}
//
// into routes, as the route directive does: in the order in which they are written.
func setChain(d *draft, args []string, segment caddyfile.Segment) error {
	chain := args[0]
	if err := chainName(chain); err != nil {
		return err
	}
	if _, ok := d.config.Chains[chain]; ok {
		return fmt.Errorf("%s is given twice: put all of its directives into one block, or give one of the two another name", chain)
	}
	routes, err := chainRoutes(segment)
	if err != nil {
		return fmt.Errorf("%s: %w", chain, err)
	}
	if d.config.Chains == nil {
		d.config.Chains = map[string]json.RawMessage{}
	}
	d.config.Chains[chain] = routes
	return nil
}

// chainRoutes lets Caddy read the block: a Helper, which directives need, is made only for a site.
func chainRoutes(segment caddyfile.Segment) (json.RawMessage, error) {
	// The name is the token before the brace, and the word route on its place makes the block one of that directive.
	block := append(caddyfile.Segment{}, segment[1:]...)
	block[0].Text = "route"
	address := block[0]
	address.Text = "http://"
	site := caddyfile.ServerBlock{HasBraces: true, Keys: []caddyfile.Token{address}, Segments: []caddyfile.Segment{block}}
	config, _, err := httpcaddyfile.ServerType{}.Setup([]caddyfile.ServerBlock{site}, map[string]any{insideChain: true})
	if err != nil {
		return nil, err
	}
	var app caddyhttp.App
	if err := json.Unmarshal(config.AppsRaw["http"], &app); err != nil {
		return nil, fmt.Errorf("decoding its routes: %w", err)
	}
	for _, server := range app.Servers {
		return siteRoutes(server.Routes)
	}
	return nil, errors.New("it has no directive")
}

// siteRoutes takes the routes out of the handler that Caddy makes of a route block.
func siteRoutes(site caddyhttp.RouteList) (json.RawMessage, error) {
	if len(site) != 1 || len(site[0].HandlersRaw) != 1 {
		return json.Marshal(site)
	}
	var subroute struct {
		Handler string          `json:"handler"`
		Routes  json.RawMessage `json:"routes"`
	}
	if err := json.Unmarshal(site[0].HandlersRaw[0], &subroute); err != nil {
		return nil, fmt.Errorf("decoding its routes: %w", err)
	}
	return subroute.Routes, nil
}
