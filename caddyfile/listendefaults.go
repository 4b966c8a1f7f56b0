package caddyfile

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// listenOptions lists Caddy's global options that change the default addresses of sites.
var listenOptions = []string{"default_bind", "http_port", "https_port"}

// withListenDefaults returns the options of the controller with the addresses of the HTTP and HTTPS servers. Without
// the options http and https, they are the default addresses of sites, which Caddy's global options can change.
func withListenDefaults(c settings.Config, global []caddyfile.Segment) (
	_ settings.Config, all []caddyconfig.Warning, err error) {
	options := slices.DeleteFunc(slices.Clone(global), func(o caddyfile.Segment) bool {
		return !slices.Contains(listenOptions, o.Directive())
	})
	if len(options) == 0 {
		return c, nil, nil
	}
	for _, of := range []struct {
		site      string
		addresses *[]string
	}{{"http://", &c.HTTP}, {"https://", &c.HTTPS}} {
		if *of.addresses != nil {
			continue
		}
		server, err := serverOfSite(options, of.site)
		if err != nil {
			return c, nil, err
		}
		*of.addresses = server.Listen
		if i := slices.IndexFunc(options, hasBlock); i >= 0 && len(all) == 0 {
			all = append(all, caddyconfig.Warning{File: options[i][0].File, Line: options[i][0].Line,
				Directive: "default_bind", Message: "protocols of the global option default_bind has no effect for " +
					"hosts of Ingresses: set protocols in the block of the global option servers"})
		}
	}
	return c, all, nil
}

func hasBlock(option caddyfile.Segment) bool {
	return slices.ContainsFunc(option, func(t caddyfile.Token) bool { return t.Text == "{" })
}

// serverOfSite returns the server that Caddy gives a site without routes, with the given global options.
func serverOfSite(options []caddyfile.Segment, site string) (*caddyhttp.Server, error) {
	adapted, err := adaptWithSite(options, caddyfile.ServerBlock{Keys: []caddyfile.Token{{Text: site}}})
	if err != nil {
		return nil, err
	}
	var app caddyhttp.App
	if err := json.Unmarshal(adapted.AppsRaw["http"], &app); err != nil {
		return nil, fmt.Errorf("decoding the server of a site: %w", err)
	}
	for _, server := range app.Servers {
		return server, nil
	}
	return nil, fmt.Errorf("the site %s has no server", site)
}
