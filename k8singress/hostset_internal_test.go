package k8singress

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// raw returns a route as it is in a configuration.
func raw(handler string, matchers ...string) caddyhttp.Route {
	r := caddyhttp.Route{HandlersRaw: []json.RawMessage{json.RawMessage(handler)}}
	for _, set := range matchers {
		var m caddy.ModuleMap
		if err := json.Unmarshal([]byte(set), &m); err != nil {
			panic(err)
		}
		r.MatcherSetsRaw = append(r.MatcherSetsRaw, m)
	}
	return r
}

func TestIngressesBehindOtherRoutes(t *testing.T) {
	const ours, other = `{"handler":"k8singress"}`, `{"handler":"static_response"}`
	redirect := func(matchers ...any) caddyhttp.Route {
		return caddyhttp.Route{MatcherSets: caddyhttp.MatcherSets{matchers}}
	}
	named := redirect(caddyhttp.MatchProtocol("http"), caddyhttp.MatchHost{"A.example", "*.b.example"})
	for name, c := range map[string]struct {
		routes caddyhttp.RouteList
		direct bool
		before hostSet
	}{
		"alone": {caddyhttp.RouteList{raw(ours)}, true, nil},
		"a redirect in front": {caddyhttp.RouteList{named, raw(ours)}, true,
			hostSet{"a.example", "*.b.example"}},
		"a redirect behind": {caddyhttp.RouteList{raw(ours), redirect(caddyhttp.MatchProtocol("http"))}, true,
			nil},
		"a redirect of all in front": {caddyhttp.RouteList{redirect(caddyhttp.MatchProtocol("http")), raw(ours)}, false,
			nil},
		"a route for a host": {
			caddyhttp.RouteList{raw(other, `{"host":["c.example"],"path":["/x"]}`), raw(ours)}, true,
			hostSet{"c.example"},
		},
		"a route for a host, or a path": {caddyhttp.RouteList{raw(other, `{"host":["c.example"]}`, `{"path":["/x"]}`),
			raw(ours)}, false, nil},
		"a route for all": {caddyhttp.RouteList{raw(other), raw(ours)}, false, nil},
		"a host that is not known yet": {caddyhttp.RouteList{raw(other, `{"host":["{env.X}"]}`), raw(ours)}, false,
			nil},
		"a host with two spellings": {caddyhttp.RouteList{raw(other, `{"host":["bücher.example"]}`), raw(ours)},
			false, nil},
		"ours for one path": {caddyhttp.RouteList{raw(ours, `{"path":["/x"]}`)}, false, nil},
		"ours with another handler next": {caddyhttp.RouteList{raw(`{"handler":"k8singress","pass_thru":true}`)}, false,
			nil},
		"none": {nil, false, nil},
	} {
		before, reason := ingressesBehind(&caddyhttp.Server{Routes: c.routes})
		if want := map[bool]string{false: reasonRoutes}[c.direct]; reason != want || !slices.Equal(before, c.before) {
			t.Errorf("%s: %q, hosts %q; want %q, %q", name, reason, before, want, c.before)
		}
	}
}

func TestHostSet(t *testing.T) {
	of := hostSet{"a.example", "*.b.example", "::1"}
	for host, want := range map[string]bool{
		"a.example": true, "A.Example:80": true, "x.b.example": true, "X.B.example.": true, "[::1]": true,
		"[::1]:80":  true,
		"b.example": false, "x.y.b.example": false, "xa.example": false, "": false,
	} {
		if of.has(host) != want {
			t.Errorf("%q: want %v", host, want)
		}
	}
}
