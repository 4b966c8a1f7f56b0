// Package k8singress holds what Caddy sees of the ingress controller: its app, the HTTP handlers, the
// listener wrapper, the certificate manager, the admin routes and the subcommand.
package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/engine"
	"github.com/k8singress/k8singress/internal/gctune"
	"github.com/k8singress/k8singress/internal/logs"
	"github.com/k8singress/k8singress/internal/settings"
)

func init() { caddy.RegisterModule(new(App)) }

// App makes Caddy a Kubernetes ingress controller. It follows the objects of a cluster or of a folder of manifests, and
// keeps the tables that the other modules of this project serve from. They live on when Caddy loads another
// configuration with the same source. With another source, or another option that the source is made from, the tables
// are built anew, and requests get 503 until they are complete.
type App struct {
	settings.Config

	// Live is what to serve when there is no source: a document as GET /k8singress/config gives it. PUT
	// /k8singress/config replaces it.
	Live *document.Live `json:"live,omitempty"`

	ctx    caddy.Context
	engine *engine.Engine
	key    string
	logs   *logs.Config
}

// engines keeps the engines over configurations, by the options that make a source another one.
var engines = caddy.NewUsagePool()

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
	a.ctx, a.logs = ctx, logs.Add(ctx)
	a.Config = a.WithDefaults()
	if err := a.Check(); err != nil {
		return err
	}
	key, err := json.Marshal(engine.Fixed(a.Config))
	if err != nil {
		return err
	}
	value, _, err := engines.LoadOrNew(string(key), func() (caddy.Destructor, error) {
		return newEngine(a.Config, logs.Logger("k8singress"))
	})
	if err != nil {
		return err
	}
	a.key, a.engine = string(key), value.(*engine.Engine)
	awaitStreamsOnExit()
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
	for _, c := range slices.Concat(a.engine.Collectors(), requests.collectors(), handedOver.collectors(),
		[]prometheus.Collector{resources{}, panicCounter, failedHandshakes}) {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// Start hands the configuration to the engine, once the one before has stopped. It does not wait for objects: until they
// are there, requests get 503. A configuration with a chain that does not work is refused.
func (a *App) Start() error {
	if err := checkChains(a.ctx, a.Chains); err != nil {
		return err
	}
	gctune.Keep()
	a.logs.Start()
	started.join(a)
	return nil
}

// Stop leaves the tables alone: requests under way, and the next configuration, need them. When the process ends, another
// replica may write status from now on.
func (a *App) Stop() error {
	a.logs.Stop()
	started.leave(a)
	if caddy.Exiting() {
		leaving.stopped.CompareAndSwap(0, time.Now().UnixNano())
		leaving.app.Store(a)
		a.engine.Resign()
	}
	return nil
}

// Cleanup ends the engine when no configuration uses it any more. Caddy does not call Stop when it fails after the start
// of all apps.
func (a *App) Cleanup() error {
	defer a.logs.Close()
	if a.engine == nil {
		return nil
	}
	started.leave(a)
	_, err := engines.Delete(a.key)
	return err
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
