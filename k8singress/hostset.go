package k8singress

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/message"
)

// ingressesBehind returns the hosts of the requests that a server does not leave to the Ingresses, if those are for some hosts only, and
// otherwise why more of them are Caddy's. The hosts are those of the routes in front of that of the Ingresses: Caddy adds its redirects
// for sites there. Routes behind that one never get a request.
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

// takesAll says whether a route gives every request to the Ingresses, and none to the next route.
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

// hostsOf returns the hosts that a route can be for, in lower case. It is false for a route that may be for any host. The matchers of
// a route that the configuration has are JSON at this time, and Caddy's own redirects have theirs already.
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
		// What a placeholder stands for is not known before the request, and other names than those of ASCII have two spellings.
		if strings.ContainsFunc(host, func(c rune) bool { return c == '{' || c > '~' }) {
			return nil, false
		}
		all[i] = strings.ToLower(host)
	}
	return all, len(route.MatcherSetsRaw)+len(route.MatcherSets) > 0
}

// hostSet are names as Caddy's matcher for hosts has them: in each place of a dot-separated name may stand a "*".
type hostSet []string

// has says whether a Host may be one of them. The server decides, so that one name too many costs only time.
func (s hostSet) has(host string) bool {
	if len(s) == 0 {
		return false
	}
	name := strings.Trim(message.Hostname(host), "[]")
	return slices.ContainsFunc(s, func(of string) bool { return of == name || strings.Contains(of, "*") && fits(of, name) })
}

func fits(pattern, name string) bool {
	labels := strings.Split(name, ".")
	wanted := strings.Split(pattern, ".")
	return slices.EqualFunc(wanted, labels, func(want, label string) bool { return want == "*" || want == label })
}
