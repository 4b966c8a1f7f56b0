package caddyinternals

import (
	"context"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// groupsKey is the context key under which Caddy stores a set of route groups: the groups in which it has already run a
// route for this request. It is a variable so that tests can change it.
var groupsKey = caddy.CtxKey("route_group")

// WithRouteGroups returns a context for a request in which no route of any group has run yet. It must be called before
// a separately compiled list of routes runs. The group numbers of each list start at zero, and Caddy runs only one
// route of a group, so it would otherwise skip routes because of the groups of an earlier list.
//
// WithRouteGroups relies on caddyhttp.Server storing the names of the groups in a map[string]struct{} under the context
// key "route_group". CheckRouteGroups reports whether this is so.
func WithRouteGroups(ctx context.Context) context.Context {
	return context.WithValue(ctx, groupsKey, map[string]struct{}{})
}

// CheckRouteGroups returns an error if Caddy does not use the map that WithRouteGroups creates. In that case, lists of
// routes with groups must not be used, because Caddy might skip some of their routes, such as a route that asks for a
// password.
func CheckRouteGroups(ctx context.Context) (err error) {
	// If Caddy expects the groups under another context key, it finds no map there and panics.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this version of Caddy does not store the route groups of a request where they are "+
				"expected: %v", p)
		}
	}()
	ctx = WithRouteGroups(ctx)
	routes := caddyhttp.RouteList{{Group: "group0"}}
	end := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
	if err := routes.Compile(end).ServeHTTP(nil, new(http.Request).WithContext(ctx)); err != nil {
		return fmt.Errorf("running a route of a group: %w", err)
	}
	if _, ok := ctx.Value(groupsKey).(map[string]struct{})["group0"]; !ok {
		return fmt.Errorf("caddy does not keep the route groups of a request in its context as %q", groupsKey)
	}
	return nil
}
