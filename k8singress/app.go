// Package k8singress holds what Caddy sees of the ingress controller: its app, the HTTP handlers, the source of
// upstreams, the certificate manager, the admin routes and the subcommand.
package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/settings"
)

func init() { caddy.RegisterModule(new(App)) }

// App makes Caddy a Kubernetes ingress controller. It follows the objects of a cluster or of a folder of manifests, and
// keeps the tables that the other modules of this project serve from. They live on when Caddy loads another
// configuration with the same source.
type App struct {
	settings.Config

	// Live is what to serve when there is no source: a document as GET /k8singress/config gives it. PUT
	// /k8singress/config replaces it.
	Live *document.Live `json:"live,omitempty"`

	ctx    caddy.Context
	engine *engine.Engine
	key    string
}

// engines keeps the engines over configurations, by what makes a source another one.
var engines = caddy.NewUsagePool()

// current is the engine of the running configuration, for the admin routes: Caddy makes those before the app.
var current atomic.Pointer[engine.Engine]

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "k8singress", New: func() caddy.Module { return new(App) }}
}

// appOf returns the app of the configuration that ctx belongs to.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("k8singress")
	if err != nil {
		return nil, err
	}
	return app.(*App), nil
}

// Provision finds the running engine, or makes one that does nothing until Start.
func (a *App) Provision(ctx caddy.Context) error {
	if a.Source != nil && a.Live != nil {
		return errors.New("an app with a source cannot have a live document: remove \"source\" or \"live\"")
	}
	a.ctx = ctx
	a.Config = a.WithDefaults()
	key, err := json.Marshal(a.Source)
	if err != nil {
		return err
	}
	value, _, err := engines.LoadOrNew(string(key), func() (caddy.Destructor, error) {
		// The engine outlives the configuration, and so does its log.
		return newEngine(a.Config, caddy.Log().Named("k8singress"))
	})
	if err != nil {
		return err
	}
	a.key, a.engine = string(key), value.(*engine.Engine)
	return a.registerMetrics(ctx.GetMetricsRegistry())
}

func newEngine(s settings.Config, log *zap.Logger) (*engine.Engine, error) {
	source, publisher, err := engine.NewSource(s, log)
	if err != nil {
		return nil, fmt.Errorf("the source of Kubernetes objects: %w", err)
	}
	return engine.New(source, publisher, log), nil
}

func (a *App) registerMetrics(registry *prometheus.Registry) error {
	for _, c := range a.engine.Collectors() {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// Start hands the configuration to the engine. It does not wait for objects: until they are there, requests get 503.
func (a *App) Start() error {
	current.Store(a.engine)
	a.engine.Adopt(a.ctx, a.Config, a.Live)
	return nil
}

// Stop leaves the tables alone: requests under way, and the next configuration, need them. When the process ends, another
// replica may write status from now on.
func (a *App) Stop() error {
	if caddy.Exiting() {
		a.engine.Resign()
	}
	return nil
}

// Cleanup ends the engine when no configuration uses it any more.
func (a *App) Cleanup() error {
	if a.engine == nil {
		return nil
	}
	if gone, err := engines.Delete(a.key); gone || err != nil {
		current.CompareAndSwap(a.engine, nil)
		return err
	}
	return nil
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
