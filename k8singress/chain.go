package k8singress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/live"
)

func init() { caddy.RegisterModule(new(Chain)) }

// Chain lets a request through the routes that the administrator has put into the app under a name, and then to the next
// handler, unless one of them answers. Each Chain has a copy of the routes for itself, so what their handlers count or
// remember is not shared with other Ingresses, and begins anew when Caddy loads another configuration.
type Chain struct {
	// Name is the key of the routes among the app's chains. A name that the app does not have is an error: what is behind a
	// chain is never served without it.
	Name string `json:"name"`

	routes  caddyhttp.RouteList
	grouped bool
}

// CaddyModule returns the Caddy module information.
func (*Chain) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_chain", New: func() caddy.Module { return new(Chain) }}
}

// Provision makes the copy.
func (c *Chain) Provision(ctx caddy.Context) error {
	if insideChain(ctx) {
		return errors.New("a chain cannot ask for another chain: put the handlers of both into one")
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	raw, ok := app.Chains[c.Name]
	if !ok {
		return fmt.Errorf("there is no chain %q: name one that the k8singress option of the Caddyfile has, or add it there", c.Name)
	}
	if err := caddy.StrictUnmarshalJSON(raw, &c.routes); err != nil {
		return fmt.Errorf("decoding the routes of chain %s: %w", c.Name, err)
	}
	live.NoteConfig(ctx, raw)
	c.grouped = bytes.Contains(raw, []byte(`"group"`))
	return c.routes.Provision(ctx)
}

// insideChain says whether the module that is provisioned in ctx is part of a chain.
func insideChain(ctx caddy.Context) bool {
	modules := ctx.Modules()
	if len(modules) == 0 {
		return false
	}
	// The last one is the module itself.
	return slices.ContainsFunc(modules[:len(modules)-1], func(m caddy.Module) bool {
		_, ok := m.(*Chain)
		return ok
	})
}

// groupsKey is where Caddy keeps the groups of which a request has met a route. Routes of a group exclude each other, and
// the names of groups are counted anew in each chain.
const groupsKey = caddy.CtxKey("route_group")

// ServeHTTP lets the request through.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if c.grouped {
		r = r.WithContext(context.WithValue(r.Context(), groupsKey, map[string]struct{}{}))
	}
	return c.routes.Compile(next).ServeHTTP(w, r)
}

// checkChains returns an error if one of the chains does not work under the configuration that ctx belongs to. All apps
// must have been provisioned.
func checkChains(ctx caddy.Context, chains map[string]json.RawMessage) error {
	trial, cancel := caddy.NewContext(ctx)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(chains)) {
		config, err := json.Marshal(&Chain{Name: name})
		if err != nil {
			return err
		}
		if _, err := trial.LoadModuleByID("http.handlers.k8singress_chain", config); err != nil {
			return fmt.Errorf("the chain %s of the k8singress app: %w", name, err)
		}
	}
	return nil
}

var (
	_ caddy.Provisioner           = (*Chain)(nil)
	_ caddyhttp.MiddlewareHandler = (*Chain)(nil)
)
