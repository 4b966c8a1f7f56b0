package k8singress

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/http/message"
)

// ingressesBehind returns the hosts for which Caddy's HTTP server must serve the requests itself. These are the hosts
// that may match a route before the route to the Ingresses. Caddy's HTTP-to-HTTPS redirects are such routes. If such a
// route may match any host, ingressesBehind returns the reason why Caddy must serve all requests. Routes after the
// route to the Ingresses never get a request.
func ingressesBehind(server *caddyhttp.Server) (before hostSet, reason string) {
	switch {
	case server.Logs != nil:
		return nil, reasonLogs
	case server.Errors != nil:
		return nil, reasonErrorRoutes
	case server.StrictSNIHost != nil && *server.StrictSNIHost:
		return nil, reasonStrictSNI
	}
	i := slices.IndexFunc(server.Routes, takesAll)
	if i < 0 || len(server.NamedRoutes) > 0 {
		return nil, reasonRoutes
	}
	for _, route := range server.Routes[:i] {
		hosts, ok := hostsOf(&route)
		if !ok {
			return nil, reasonRoutes
		}
		before = append(before, hosts...)
	}
	return before, ""
}

// takesAll reports whether a route passes all requests to the Ingresses, so that later routes get no requests.
func takesAll(route caddyhttp.Route) bool {
	if route.Group != "" || len(route.MatcherSetsRaw) > 0 || len(route.MatcherSets) > 0 || len(route.HandlersRaw) != 1 {
		return false
	}
	var handler struct {
		Handler  string `json:"handler"`
		PassThru bool   `json:"pass_thru"`
	}
	err := json.Unmarshal(route.HandlersRaw[0], &handler)
	return err == nil && handler.Handler == "k8singress" && !handler.PassThru
}

// hostsOf returns the hosts that a route can match, in lower case. ok is false if the route can match any host. Routes
// from the configuration are not provisioned yet, so their matchers are still JSON; the matchers of Caddy's own
// redirects are already provisioned.
func hostsOf(route *caddyhttp.Route) (all hostSet, ok bool) {
	for _, set := range route.MatcherSetsRaw {
		var hosts caddyhttp.MatchHost
		if err := json.Unmarshal(set["host"], &hosts); err != nil {
			return nil, false
		}
		all = append(all, hosts...)
	}
	for _, set := range route.MatcherSets {
		i := slices.IndexFunc(set, func(matcher any) bool { _, is := matcher.(caddyhttp.MatchHost); return is })
		if i < 0 {
			return nil, false
		}
		all = append(all, set[i].(caddyhttp.MatchHost)...)
	}
	for i, host := range all {
		// Assume that the route can match any host: the value of a placeholder depends on the request, and a client may
		// send the Punycode form of a name with non-ASCII characters.
		if strings.ContainsFunc(host, func(c rune) bool { return c == '{' || c > '~' }) {
			return nil, false
		}
		all[i] = strings.ToLower(host)
	}
	return all, len(route.MatcherSetsRaw)+len(route.MatcherSets) > 0
}

// hostSet is a list of host names as in Caddy's host matcher. Each label of a name may be the wildcard "*".
type hostSet []string

// has reports whether a Host header may match one of the names. A false positive only costs time, because Caddy's HTTP
// server then matches the request exactly.
func (s hostSet) has(host string) bool {
	if len(s) == 0 {
		return false
	}
	name := strings.Trim(message.Hostname(host), "[]")
	return slices.ContainsFunc(s, func(of string) bool {
		return of == name || strings.Contains(of, "*") &&
			fits(of, name)
	})
}

func fits(pattern, name string) bool {
	labels := strings.Split(name, ".")
	wanted := strings.Split(pattern, ".")
	return slices.EqualFunc(wanted, labels, func(want, label string) bool { return want == "*" || want == label })
}
