// Package k8singress holds the Caddy modules of the ingress controller: its app, the HTTP handlers, the listener
// wrapper, the certificate manager, the admin routes and the subcommand.
package k8singress

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/events"
	"github.com/k8singress/k8singress/internal/process/gctune"
	"github.com/k8singress/k8singress/internal/process/logs"
	"github.com/k8singress/k8singress/internal/upstream/services"
	"github.com/k8singress/k8singress/l4app"
)

func init() { caddy.RegisterModule(new(App)) }

// App is a Caddy app that makes Caddy a Kubernetes ingress controller. It watches the objects in a source, which is a
// cluster or a folder of manifests, and maintains the routing tables that the other Caddy modules of this project use.
// If Caddy loads another configuration with the same source, the tables are kept. If the source or an option that
// affects it changes, the tables are rebuilt, and requests get 503 until this is complete.
type App struct {
	Options

	// Live contains the hosts, routes and backends to serve if the app does not read Kubernetes objects from a cluster
	// or a folder. It has the format of GET /k8singress/config. PUT /k8singress/config replaces it.
	Live *document.Live `json:"live,omitempty"`

	// config holds the options with their defaults.
	config settings.Config
	ctx    caddy.Context
	engine *engine.Engine
	key    string
	// trustsProxies is true if a server for Ingresses trusts proxies (trusted_proxies).
	trustsProxies bool
	// chainsChecked is true if checkChains was called.
	chainsChecked bool
	logs          *logs.Config
	events        *events.Config
}

// engines holds the running engines, which watch the Kubernetes objects and maintain the routing tables. The pool lets
// them survive configuration reloads. The keys are the options whose change requires a new engine.
var engines = caddy.NewUsagePool()

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "k8singress", New: func() caddy.Module { return new(App) }}
}

// appOf returns the k8singress app of the configuration that ctx belongs to. It must be called while ctx provisions a
// module. It returns an error if a chain of the app cannot be provisioned.
func appOf(ctx caddy.Context) (*App, error) {
	app, err := ctx.App("k8singress")
	if err != nil {
		return nil, err
	}
	return app.(*App), app.(*App).CheckChains(ctx)
}

// Services returns the registry in which Caddy modules follow Services to which no Kubernetes object refers. It must be
// called after Provision.
func (a *App) Services() *services.Registry { return a.engine.Services() }

// Ports returns the TCP and UDP ports that Kubernetes objects define. It must be called after Provision.
func (a *App) Ports() *l4app.Ports { return a.engine.Ports() }

// Provision looks up the running engine, which maintains the routing tables, or creates an engine if no running engine
// has the same options. A new engine does nothing until Start is called.
func (a *App) Provision(ctx caddy.Context) error {
	if a.Source != nil && a.Live != nil {
		return errors.New("an app with a source cannot have a live document: remove \"source\" or \"live\"")
	}
	a.ctx, a.logs = ctx, logs.Add(ctx)
	config, err := a.settings()
	if err != nil {
		return err
	}
	if a.events, err = events.Add(ctx); err != nil {
		return err
	}
	a.config = config.WithDefaults()
	if err := a.config.Check(); err != nil {
		return err
	}
	key, err := json.Marshal(engine.Fixed(a.config))
	if err != nil {
		return err
	}
	value, _, err := engines.LoadOrNew(string(key), func() (caddy.Destructor, error) {
		return newEngine(a.config, logs.Logger("k8singress"))
	})
	if err != nil {
		return err
	}
	a.key, a.engine = string(key), value.(*engine.Engine)
	awaitStreamsOnExit()
	if err := a.registerMetrics(ctx.GetMetricsRegistry()); err != nil {
		return err
	}
	return a.CheckChains(ctx)
}

// settings converts the options to the form in which the packages of the controller use them. Both forms have the same
// JSON.
func (o *Options) settings() (c settings.Config, err error) {
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return c, fmt.Errorf("decoding the options: %w", err)
	}
	return c, nil
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
		[]prometheus.Collector{resources{}, panicCounter, failedHandshakes, failedProxyHeaders}) {
		if err := registry.Register(c); err != nil && !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// Start passes the configuration to the engine. The configuration takes effect once Caddy has stopped the app of the
// previous configuration. Start does not wait for Kubernetes objects; until they are loaded, requests get 503.
func (a *App) Start() error {
	if err := a.checkChains(); err != nil {
		return err
	}
	gctune.Keep()
	a.logs.Start()
	if started.engine() == nil {
		warnOfResume(os.Args[1:], caddy.ConfigAutosavePath)
	}
	started.join(a)
	return nil
}

// Stop does not discard the routing tables, because requests in progress and the next configuration use them. If the
// process is exiting, Stop releases the leader election Lease, so that another replica can take over writing the status
// of objects.
func (a *App) Stop() error {
	a.logs.Stop()
	started.leave(a)
	a.events.Stop()
	if caddy.Exiting() {
		leaving.stopped.CompareAndSwap(0, time.Now().UnixNano())
		leaving.app.Store(a)
		a.engine.Resign()
	}
	return nil
}

// Cleanup stops the engine if no other configuration uses it. It also removes the app from the list of started apps,
// because Caddy does not call Stop if loading a configuration fails after all of its apps have started.
func (a *App) Cleanup() error {
	defer a.logs.Close()
	if a.engine == nil {
		return nil
	}
	started.leave(a)
	a.events.Stop()
	_, err := engines.Delete(a.key)
	return err
}

var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
