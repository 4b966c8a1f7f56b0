// Package logs provides loggers for code that outlives Caddy configurations: the engine, the tables, the sockets and
// the storage.
//
// A custom log of Caddy (log NAME { include k8singress }) belongs to one configuration. A logger from caddy.Log()
// writes only to the default log, so custom logs never get its messages. A logger from caddy.Context.Logger writes to
// the logs of its configuration, which may have ended. A logger of this package writes each message to the logs of the
// configuration that Caddy currently runs, and applies their filters, levels and sampling. Without a configuration,
// messages go to Caddy's default log.
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

// Add registers the logs of the configuration that ctx belongs to. If no configuration is running, they get messages at
// once. Otherwise they get messages after Start, once the previous configuration has stopped. Modules call Add in
// Provision and Close in Cleanup.
func Add(ctx caddy.Context) *Config { return process.add(ctx, ctx.Logger(everyModule{})) }

// process is the relay of this process. Caddy has one default log and one running configuration.
var process relay

// everyModule makes Context.Logger return all logs. For a module with a name, Context.Logger would leave out logs that
// include nothing below that name. The logs still filter each entry by the entry's own logger name.
type everyModule struct{}

func (everyModule) CaddyModule() caddy.ModuleInfo { return caddy.ModuleInfo{} }

// relay passes messages to the logs of one of several configurations.
type relay struct {
	// current holds the logs that get the messages. Nil selects Caddy's default log.
	current atomic.Pointer[Config]

	mu sync.Mutex
	// configs are the configurations that have been added and not closed, oldest first.
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

// choose selects the logs of the oldest running configuration for the messages, because Caddy starts a new
// configuration before it stops the old one, and the new one may still fail. If no configuration is running, choose
// selects the newest, which is about to start or end. The caller holds the lock.
func (r *relay) choose() {
	if i := slices.IndexFunc(r.configs, func(c *Config) bool { return c.running }); i >= 0 {
		r.current.Store(r.configs[i])
	} else if n := len(r.configs); n > 0 {
		r.current.Store(r.configs[n-1])
	} else {
		r.current.Store(nil)
	}
}

// Config holds the logs of one configuration. The methods of a nil Config do nothing.
type Config struct {
	relay *relay
	core  zapcore.Core
	// callers and stacks are the options with_caller and with_stacktrace of Caddy's logs.
	callers bool
	stacks  zapcore.Level
	// running is set between Start and Stop. The lock of the relay guards it.
	running bool

	// writing is read-locked while a message is written, so that no writer is closed during the write.
	writing sync.RWMutex
	// ctx ends before Caddy closes the writers. It is nil after Close, because loggers may keep the Config for longer.
	ctx interface{ Err() error }
}

// Start must be called when the app of the configuration starts.
func (c *Config) Start() { c.run(true) }

// Stop must be called when the app of the configuration stops. If another configuration gets the messages, Stop waits
// until no message is being written to the old logs. Otherwise the old logs get the messages until Caddy closes them.
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
	defer c.writing.Unlock() // Taking the lock is enough.
}

// Close removes the configuration. It may be called more than once.
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

// enter reports whether the logs currently get the messages. If it returns true, they stay open until leave is called.
func (c *Config) enter() bool {
	c.writing.RLock()
	if c.relay.current.Load() != c {
		c.writing.RUnlock()
		return false
	}
	if c.ctx.Err() != nil {
		// Caddy closes the writers before it cleans up the modules, so Close was not called yet.
		c.writing.RUnlock()
		c.Close()
		return false
	}
	return true
}

func (c *Config) leave() { c.writing.RUnlock() }
