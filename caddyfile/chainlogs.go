package caddyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// logVariables maps the variables of requests that change the lines of Caddy's access logs to the directives that set
// them.
var logVariables = map[string]string{
	caddyhttp.LogSkipVar: "log_skip", caddyhttp.LogLevelVar: "log_level", caddyhttp.AccessLoggerNameVarKey: "log_name",
}

// chainLogWarnings returns a warning for each directive of a chain that changes the access log in Caddy's format, if
// there is no such log: neither the option access_log of c nor a site of the configuration has one. global holds the
// global options of the Caddyfile.
func chainLogWarnings(config map[string]any, c settings.Config, global []caddyfile.Segment) (
	all []caddyconfig.Warning) {
	if c.AccessLog == settings.AccessLogCaddy || anySiteLogs(config) {
		return nil
	}
	for _, chain := range slices.Sorted(maps.Keys(c.Chains)) {
		var routes any
		// An invalid chain is reported when it is loaded.
		_ = json.Unmarshal(c.Chains[chain], &routes)
		found := map[string]bool{}
		findLogDirectives(routes, found)
		at := chainAt(global, chain)
		for _, directive := range slices.Sorted(maps.Keys(found)) {
			message := fmt.Sprintf("%s in the chain %s has no effect without an access log in Caddy's format: add the "+
				"option \"access_log caddy\", or remove the directive", directive, chain)
			all = append(all, caddyconfig.Warning{File: at.File, Line: at.Line, Directive: "chain", Message: message})
		}
	}
	return all
}

// chainAt returns the first token of the option chain with this name. It returns an empty token if there is no such
// option, because a caller of Caddy has added the chain.
func chainAt(global []caddyfile.Segment, chain string) caddyfile.Token {
	for _, segment := range global {
		if segment.Directive() != name {
			continue
		}
		for _, option := range optionsIn(segment) {
			if option.Directive() == "chain" && len(option) > 1 && option[1].Text == chain {
				return option[0]
			}
		}
	}
	return caddyfile.Token{}
}

// anySiteLogs reports whether a server of the configuration has an access log. It may be the server of a site with the
// directive, where chains change the lines.
func anySiteLogs(config map[string]any) bool {
	servers := structure.Branch(config, "apps", "http", "servers")
	for server := range servers {
		if structure.Branch(servers, server)["logs"] != nil {
			return true
		}
	}
	return false
}

// findLogDirectives adds the directives to found that change the access log. in is a part of the routes of a chain,
// decoded from JSON.
func findLogDirectives(in any, found map[string]bool) {
	switch in := in.(type) {
	case []any:
		for _, element := range in {
			findLogDirectives(element, found)
		}
	case map[string]any:
		switch in["handler"] {
		case "log_append":
			found["log_append"] = true
		case "vars":
			for variable, directive := range logVariables {
				if _, ok := in[variable]; ok {
					found[directive] = true
				}
			}
		}
		for _, element := range in {
			findLogDirectives(element, found)
		}
	}
}
