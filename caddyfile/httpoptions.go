package caddyfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/k8singress/k8singress/internal/control/structure"
)

// httpOptions lists Caddy's global options that configure its HTTP app as a whole.
var httpOptions = []string{"grace_period", "metrics", "shutdown_delay"}

// addHTTPOptions adds the settings of Caddy's HTTP app to a Caddyfile without sites, because Caddy then omits the app.
func addHTTPOptions(config map[string]any, global []caddyfile.Segment) error {
	options := slices.DeleteFunc(slices.Clone(global), func(o caddyfile.Segment) bool {
		return !slices.Contains(httpOptions, o.Directive())
	})
	if structure.Branch(config, "apps", "http") != nil || len(options) == 0 {
		return nil
	}
	adapted, err := adaptWithSite(options, caddyfile.ServerBlock{Keys: []caddyfile.Token{{Text: "http://"}}})
	if err != nil {
		return err
	}
	var app map[string]any
	if err := json.Unmarshal(adapted.AppsRaw["http"], &app); err != nil {
		return fmt.Errorf("decoding the options of the HTTP app: %w", err)
	}
	delete(app, "servers")
	config["apps"].(map[string]any)["http"] = app
	return nil
}

// adaptWithSite lets Caddy adapt a Caddyfile that has the given global options and one site.
func adaptWithSite(global []caddyfile.Segment, site caddyfile.ServerBlock) (*caddy.Config, error) {
	site.HasBraces = true
	adapted, _, err := httpcaddyfile.ServerType{}.Setup(
		[]caddyfile.ServerBlock{{HasBraces: true, Segments: global}, site}, nil)
	return adapted, err
}
