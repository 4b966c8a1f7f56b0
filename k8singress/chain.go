package k8singress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/live"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
)

func init() {
	caddy.RegisterModule(new(Chain))
	caddy.RegisterModule(new(DefaultChains))
}

// Chain runs a request through a list of Caddy routes, which the administrator has configured under a name in the app.
// If none of these routes responds, it calls the next handler. Each Chain has its own copy of the routes, so the state
// of their handlers, such as counters, is not shared between Ingresses. The state is lost when Caddy loads another
// configuration.
type Chain struct {
	// Name is the name of the list of routes in the option chains of the app. An unknown name is an error, so that
	// requests are never served without the intended routes.
	Name string `json:"name"`

	routes  caddyhttp.RouteList
	grouped bool
	// err is the error for requests if the routes cannot be used, otherwise nil.
	err error
}

// CaddyModule returns the Caddy module information.
func (*Chain) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_chain", New: func() caddy.Module { return new(Chain) }}
}

// Provision creates and provisions this Chain's own copy of the routes.
func (c *Chain) Provision(ctx caddy.Context) error {
	if insideChain(ctx) {
		return errors.New("a chain cannot contain another chain: put the handlers of both into one chain")
	}
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	raw, ok := app.config.Chains[c.Name]
	if !ok {
		return fmt.Errorf(
			"there is no chain %q: use the name of a chain in the k8singress option of the Caddyfile, or add the "+
				"chain there", c.Name)
	}
	if err := caddy.StrictUnmarshalJSON(raw, &c.routes); err != nil {
		return fmt.Errorf("decoding the routes of chain %s: %w", c.Name, err)
	}
	live.RecordConfig(ctx, raw)
	if c.grouped = bytes.Contains(raw, []byte(`"group"`)); c.grouped {
		if c.err = caddyinternals.CheckRouteGroups(ctx); c.err != nil {
			ctx.Logger().Warn("a chain with groups of routes (handle in the Caddyfile) needs the tested version of "+
				"Caddy: requests get 503", zap.String("chain", c.Name), zap.Error(c.err))
		}
	}
	return c.routes.Provision(ctx)
}

// insideChain reports whether the module that is being provisioned with ctx is itself inside a Chain.
func insideChain(ctx caddy.Context) bool {
	modules := ctx.Modules()
	if len(modules) == 0 {
		return false
	}
	// The last module in the list is this module itself, so skip it.
	return slices.ContainsFunc(modules[:len(modules)-1], func(m caddy.Module) bool {
		_, ok := m.(*Chain)
		return ok
	})
}

// ServeHTTP runs the request through the routes. If no route responds, it calls next.
func (c *Chain) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if c.err != nil {
		return caddyhttp.Error(http.StatusServiceUnavailable, c.err)
	}
	if c.grouped {
		r = r.WithContext(caddyinternals.WithRouteGroups(r.Context()))
	}
	return c.routes.Compile(next).ServeHTTP(w, r)
}

// DefaultChains runs a request through the chains that the administrator has set for all Ingresses, or for some of
// them. If no chain responds, it calls the next handler.
type DefaultChains struct {
	// Names are the names of the chains, in the order in which they run. An unknown name is an error.
	Names []string `json:"names"`

	chains []*Chain
}

// CaddyModule returns the Caddy module information.
func (*DefaultChains) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.k8singress_default_chains",
		New: func() caddy.Module { return new(DefaultChains) }}
}

// Provision creates and provisions the chains.
func (d *DefaultChains) Provision(ctx caddy.Context) error {
	for _, name := range d.Names {
		c, err := loadChain(ctx, name)
		if err != nil {
			return err
		}
		d.chains = append(d.chains, c)
	}
	return nil
}

// ServeHTTP runs the request through the chains. If no chain responds, it calls next.
func (d *DefaultChains) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	run := live.ChainRunFrom(r.Context())
	if run == nil {
		return caddyhttp.Error(http.StatusInternalServerError, errNoRequest)
	}
	var handler caddyhttp.Handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		run.UseErrorPages()
		return next.ServeHTTP(w, r)
	})
	for _, c := range slices.Backward(d.chains) {
		behind := handler
		handler = caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return c.ServeHTTP(w, r, behind)
		})
	}
	return handler.ServeHTTP(w, r)
}

// loadChain creates and provisions a chain in the configuration that ctx belongs to.
func loadChain(ctx caddy.Context, name string) (*Chain, error) {
	config, err := json.Marshal(&Chain{Name: name})
	if err != nil {
		return nil, err
	}
	module, err := ctx.LoadModuleByID("http.handlers.k8singress_chain", config)
	if err != nil {
		return nil, fmt.Errorf("the chain %s of the k8singress app: %w", name, err)
	}
	return module.(*Chain), nil
}

var (
	_ caddy.Provisioner           = (*Chain)(nil)
	_ caddyhttp.MiddlewareHandler = (*Chain)(nil)
	_ caddy.Provisioner           = (*DefaultChains)(nil)
	_ caddyhttp.MiddlewareHandler = (*DefaultChains)(nil)
)
