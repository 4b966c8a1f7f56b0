// Package logs provides loggers for code that continues to run when Caddy loads a new configuration, such as the code
// that watches Kubernetes and the code that owns the sockets.
//
// A custom log of Caddy (log NAME { include k8singress }) belongs to one configuration. A logger from caddy.Log()
// writes only to the default log, so custom logs do not get its messages. A logger from caddy.Context.Logger writes to
// the logs of its configuration, which may have ended. A logger of this package writes each message to the logs of the
// configuration that Caddy currently runs, and applies their filters, levels and sampling. If no configuration is
// running, messages go to Caddy's default log.
package logs

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns the logger with the given name, such as "k8singress.http". It may be called before the first
// configuration is loaded.
func Logger(name string) *zap.Logger { return process.logger(name) }

// Add registers the logs of the configuration that ctx belongs to. If no configuration is running, these logs get
// messages at once. Otherwise they get messages after Start, once the previous configuration has stopped. Modules call
// Add in Provision and Config.Close in Cleanup.
func Add(ctx caddy.Context) *Config { return process.add(ctx, ctx.Logger(everyModule{})) }

// process is the relay of this process: it forwards the messages of all loggers of this package to the logs of the
// running Caddy configuration. One relay is enough, because Caddy has one default log and runs one configuration.
var process relay

// everyModule is a module without a name. It is passed to Context.Logger to get a logger that writes to all logs of a
// configuration. For a named module, Context.Logger skips the logs whose include list does not match the name. Each log
// still filters entries by the names of their loggers.
type everyModule struct{}

func (everyModule) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{} }

// The type relay passes messages to the logs of the configuration that is currently running.
type relay struct {
	// current holds the logs that get the messages. Nil selects Caddy's default log.
	current atomic.Pointer[Config]

	mu sync.Mutex
	// configs lists the configurations that were added and are not closed yet, oldest first.
	configs []*Config
}

func (r *relay) add(ctx caddy.Context, log *zap.Logger) *Config {
	c := &Config{relay: r, core: log.Core(), ctx: ctx.Context}
	c.callers, c.stacks = annotations(log)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs = append(r.configs, c)
	r.choose()
	return c
}

// choose selects the configuration whose logs get the messages. This is the oldest running configuration, because Caddy
// starts a new configuration before it stops the old one, and the new one may still fail. If no configuration is
// running, choose selects the newest one, which is about to start or end. The caller must hold the relay's lock.
func (r *relay) choose() {
	if i := slices.IndexFunc(r.configs, func(c *Config) bool { return c.running }); i >= 0 {
		r.current.Store(r.configs[i])
	} else if n := len(r.configs); n > 0 {
		r.current.Store(r.configs[n-1])
	} else {
		r.current.Store(nil)
	}
}

// Config holds the logs of one Caddy configuration. The methods of a nil Config do nothing.
type Config struct {
	relay *relay
	core  zapcore.Core
	// callers and stacks have the values of the options with_caller and with_stacktrace of the logs.
	callers bool
	stacks  zapcore.Level
	// running is true from Start to Stop. The relay's lock protects it.
	running bool

	// writing is read-locked while a message is written, so that the log writers are not closed during the write.
	writing sync.RWMutex
	// ctx is canceled before Caddy closes the log writers. It is nil after Close, so that a logger that still has a
	// pointer to the Config does not keep the context in memory.
	ctx interface{ Err() error }
}

// Start must be called when the app of the configuration starts.
func (c *Config) Start() { c.run(true) }

// Stop must be called when the app of the configuration stops. If another configuration then gets the messages, Stop
// waits until no message is being written to the logs of the stopped configuration. Otherwise these logs get the
// messages until Caddy closes them.
func (c *Config) Stop() { c.run(false) }

func (c *Config) run(running bool) {
	if c == nil {
		return
	}
	c.relay.mu.Lock()
	c.running = running
	c.relay.choose()
	c.relay.mu.Unlock()
	if c.relay.current.Load() != c {
		c.wait()
	}
}

// wait waits until no message is being written.
func (c *Config) wait() {
	c.writing.Lock()
	defer c.writing.Unlock() // No message is being written while the lock is held.
}

// Close removes the configuration from the relay, so that its logs get no more messages. It may be called more than
// once.
func (c *Config) Close() {
	if c == nil {
		return
	}
	r := c.relay
	r.mu.Lock()
	r.configs = slices.DeleteFunc(r.configs, func(o *Config) bool { return o == c })
	r.choose()
	r.mu.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
	c.ctx = nil
}

// enter reports whether the logs of this configuration currently get the messages. If it returns true, the logs stay
// open until leave is called.
func (c *Config) enter() bool {
	c.writing.RLock()
	if c.relay.current.Load() != c {
		c.writing.RUnlock()
		return false
	}
	if c.ctx.Err() != nil {
		// The context of this configuration was canceled, because Caddy is closing its log writers. Caddy calls Close
		// on c only after that, when it cleans up the modules. So release the lock and call Close now.
		c.writing.RUnlock()
		c.Close()
		return false
	}
	return true
}

func (c *Config) leave() { c.writing.RUnlock() }
