package logs

import (
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logger returns the logger with the given name. The logger adds the caller and a stack trace to an entry if the logs
// that receive the entry are configured to contain them. The caller is determined only for entries that are written.
func (r *relay) logger(name string) *zap.Logger {
	stacks := zap.LevelEnablerFunc(func(level zapcore.Level) bool {
		config := r.current.Load()
		return config != nil && config.stacks.Enabled(level)
	})
	return zap.New(&core{relay: r}, zap.AddCaller(), zap.AddStacktrace(stacks)).Named(name)
}

// core is a zapcore.Core that passes each entry to the logs of Caddy's current configuration.
type core struct {
	relay *relay
	// fields are added to each entry.
	fields []zapcore.Field
	// cached is the zapcore.Core of the configuration that received the last entry, with the fields already encoded.
	cached atomic.Pointer[fieldedCore]
}

type fieldedCore struct {
	config *Config
	core   zapcore.Core
}

// Enabled reports whether a log accepts entries of a level. If it returns false, zap does nothing else for the entry.
func (c *core) Enabled(level zapcore.Level) bool {
	if config := c.relay.current.Load(); config != nil {
		return config.core.Enabled(level)
	}
	return defaultLog().Enabled(level)
}

// With implements zapcore.Core. It returns a core that adds fields to each entry. The fields are encoded once for each
// configuration, when its first entry is logged.
func (c *core) With(fields []zapcore.Field) zapcore.Core {
	return &core{relay: c.relay, fields: slices.Concat(c.fields, fields)}
}

// Check adds a core to checked if a log accepts the entry. This core later writes the entry. Otherwise Check returns
// checked unchanged.
func (c *core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	config := c.relay.current.Load()
	taken := c.check(config, e)
	if taken == nil {
		return checked
	}
	return checked.AddCore(e, &message{core: c, config: config, taken: taken})
}

// Write checks an entry and writes it if a log accepts it. It is called for entries that were not checked before.
func (c *core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	if checked := c.Check(e, nil); checked != nil {
		checked.ErrorOutput = errorOutput
		checked.Write(fields...)
	}
	return nil
}

// Sync flushes the logs.
func (c *core) Sync() error {
	config := c.relay.current.Load()
	if config == nil {
		return defaultLog().Sync()
	}
	if !config.enter() {
		return nil
	}
	defer config.leave()
	return config.core.Sync()
}

// check returns the entry together with the logs of config that accept it, or nil if no log accepts it. A nil config
// stands for Caddy's default log.
func (c *core) check(config *Config, e zapcore.Entry) *zapcore.CheckedEntry {
	if config == nil {
		// The default log may exclude the name of this logger because a custom log includes it. No custom log is
		// running at this time, so remove the name to make the default log accept the entry.
		e.LoggerName = ""
		return defaultLog().Check(e, nil)
	}
	if len(c.fields) == 0 {
		return config.core.Check(e, nil)
	}
	cached := c.cached.Load()
	if cached == nil || cached.config != config {
		cached = &fieldedCore{config: config, core: config.core.With(c.fields)}
		c.cached.Store(cached)
	}
	return cached.core.Check(e, nil)
}

// message is an entry that at least one log has accepted. It implements zapcore.Core, so that zap calls its Write
// method to write the entry.
type message struct {
	*core
	config *Config
	taken  *zapcore.CheckedEntry
}

// Write writes the entry. If the current configuration has changed since core.Check, the entry is written to the logs
// of the new configuration instead.
func (m *message) Write(e zapcore.Entry, fields []zapcore.Field) error {
	config, taken := m.config, m.taken
	for taken != nil && !m.write(config, taken, e, fields) {
		config = m.relay.current.Load()
		taken = m.check(config, e)
	}
	return nil
}

func (m *message) write(config *Config, taken *zapcore.CheckedEntry, e zapcore.Entry, fields []zapcore.Field) bool {
	if config != nil {
		if !config.enter() {
			return false
		}
		defer config.leave()
	} else {
		fields = slices.Concat([]zapcore.Field{zap.String("logger", e.LoggerName)}, m.fields, fields)
		e.LoggerName = ""
	}
	if config == nil || !config.callers {
		e.Caller = zapcore.EntryCaller{}
	}
	taken.Entry, taken.ErrorOutput = e, errorOutput
	taken.Write(fields...)
	return true
}

// errorOutput receives the errors of log writers, as for all loggers of Caddy.
var errorOutput = zapcore.Lock(os.Stderr)

func defaultLog() zapcore.Core { return caddy.Log().Core() }

// annotations reports whether a logger adds callers to entries, and returns the lowest level at which it adds stack
// traces. zap has no method to read these options of a logger.
func annotations(log *zap.Logger) (callers bool, stacks zapcore.Level) {
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	all := zapcore.NewCore(encoder, zapcore.AddSync(io.Discard), zapcore.DebugLevel)
	log = log.WithOptions(zap.WrapCore(func(zapcore.Core) zapcore.Core { return all }))
	stacks = zapcore.InvalidLevel
	for level := zapcore.FatalLevel; level >= zapcore.DebugLevel; level-- {
		entry := log.Check(level, "")
		callers = entry.Caller.Defined
		if entry.Stack != "" {
			stacks = level
		}
	}
	return callers, stacks
}
