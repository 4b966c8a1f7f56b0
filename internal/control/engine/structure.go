package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/caddyinternals"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// patching is the state of the task that adds the required servers and settings to Caddy's configuration. The task has
// to wait for Caddy, so it runs on its own goroutine. Only one task runs at a time.
type patching struct {
	running panics.Group
	ended   chan patched
	// underWay is true while the task is running. again is true if the task must be started again afterwards.
	underWay, again bool
	// memory holds our servers in the last complete configuration. Only the task uses it.
	memory structure.Memory
}

// patched is the result of one run of the task that adds the required servers and settings to Caddy's configuration.
type patched struct {
	changed bool
	err     error
}

// patchStructure starts a goroutine that adds the servers and settings that the options require to Caddy's
// configuration, unless they are already there.
func (l *loop) patchStructure(ctx context.Context) {
	m := &l.patching
	if m.underWay {
		m.again = true
		return
	}
	m.underWay, m.again = true, false
	m.running.Go("engine/structure", func() {
		var changed bool
		err := panics.Run("engine/structure", func() (err error) {
			changed, err = l.structure(ctx)
			return err
		})
		m.ended <- patched{changed, err}
	})
}

// onPatched handles the result of the goroutine that patchStructure has started. It counts a reload if Caddy had to
// load its configuration again.
func (l *loop) onPatched(ctx context.Context, m patched) {
	l.patching.underWay = false
	switch {
	case m.err != nil && ctx.Err() == nil:
		l.patchFailed(m.err)
	case m.err == nil:
		l.patchFailure.Store(nil)
		if !l.live.Pending() {
			l.retry.succeeded()
		}
	}
	if m.err == nil && m.changed {
		l.metrics.reloads.Inc()
	}
	l.recordApplied(false)
	if l.patching.again {
		l.patchStructure(ctx)
	}
}

// patchFailed logs that the required servers and settings could not be added to Caddy's configuration, and schedules a
// retry. It logs at debug level if the error is the same as before, otherwise at error level.
func (l *loop) patchFailed(err error) {
	level, text := zap.ErrorLevel, err.Error()
	if before := l.patchFailure.Swap(&text); before != nil && *before == text {
		level = zap.DebugLevel
	}
	l.log.Log(level, "cannot add the controller's servers to Caddy's configuration; trying again", zap.Error(err))
	l.retry.arm()
}

// The method structure adds the servers and settings that the options require to Caddy's configuration, if they are
// missing or different. A Caddyfile always produces all of them, so this is only needed for a JSON configuration that
// contains our app but not the servers. It reports whether Caddy had to load the configuration again.
func (l *loop) structure(ctx context.Context) (bool, error) {
	address := adminAddress(l.Settings())
	if address == settings.AdminOff {
		return false, l.complete()
	}
	if l.hasStructure(ctx) {
		return false, nil
	}
	admin, err := apply.NewAdmin(address)
	if err != nil {
		return false, err
	}
	// Read the options inside the function. It is called after Caddy has loaded its current configuration, and the
	// options may have changed by then.
	var overwritten []string
	var next structure.Memory
	changed, err := admin.Change(ctx, func(config map[string]any) error {
		if l.isComplete(config) {
			return nil
		}
		o := l.Settings()
		overwritten = l.patching.memory.Overwrites(config, o)
		err := l.patching.memory.Merge(config, o)
		next = structure.Remember(config, o)
		return err
	})
	if !changed || err != nil {
		return changed, err
	}
	l.patching.memory = next
	if len(overwritten) > 0 {
		level := zap.InfoLevel
		if slices.ContainsFunc(overwritten, isLost) {
			level = zap.WarnLevel
		}
		l.log.Log(level, "the servers of k8singress in Caddy's configuration did not match its options, and were "+
			"changed to match them", zap.Strings("settings", overwritten))
	}
	return true, nil
}

// isLost reports whether a text of Overwrites is about a setting that was not restored.
func isLost(text string) bool { return strings.HasSuffix(text, structure.UntilReload) }

// hasStructure reports whether the running configuration of Caddy already has all servers and settings that the options
// require. It does not use the admin API, because Caddy logs each request to it. If the configuration cannot be read,
// hasStructure returns false.
func (l *loop) hasStructure(ctx context.Context) bool {
	raw, err := caddyinternals.RunningConfig(ctx)
	if err != nil {
		return false
	}
	var config map[string]any
	return json.Unmarshal(raw, &config) == nil && config != nil && l.isComplete(config)
}

// isComplete reports whether a configuration of Caddy has all servers and settings that the options require. If so, it
// remembers the servers in it.
func (l *loop) isComplete(config map[string]any) bool {
	o, after := l.Settings(), structure.Tree(config)
	if structure.Merge(after, o) != nil || !reflect.DeepEqual(config, after) {
		return false
	}
	l.patching.memory = structure.Remember(after, o)
	return true
}

// complete returns an error if Caddy's configuration lacks a server that the options require. It is called if Caddy's
// admin API is off, so that the controller cannot add the server.
func (e *Engine) complete() error {
	missing := missingServer(e.Settings(), front.Process().Expects)
	if missing == "" {
		return nil
	}
	return fmt.Errorf(
		"the configuration has no server for the option %s, and it cannot be added because Caddy's admin API is "+
			"off: use a Caddyfile instead of JSON, or remove \"disabled\" from \"admin\", and \"admin\" "+
			"from the app k8singress",
		missing)
}

// missingServer returns the name of the first option that requires an HTTP server for which isThere returns false, or
// "" if no required server is missing.
func missingServer(o settings.Config, isThere func(server string) bool) string {
	switch {
	case len(o.HTTP) > 0 && !isThere(structure.HTTPServer):
		return "http"
	case len(o.HTTPS) > 0 && !isThere(structure.HTTPSServer):
		return "https"
	}
	return ""
}

// LoadStructure adds our app with the given options, and the servers and settings that they require, to a running Caddy
// without the app. Afterwards PUT /k8singress/config works. admin is the address of Caddy's admin API.
func LoadStructure(ctx context.Context, admin string, o settings.Config) error {
	client, err := apply.NewAdmin(admin)
	if err != nil {
		return err
	}
	o.Source, o.Admin = nil, admin
	_, err = client.Change(ctx, func(config map[string]any) error {
		if err := structure.Merge(config, o); err != nil {
			return fmt.Errorf("the servers of the controller conflict with Caddy's configuration: %w", err)
		}
		structure.Branch(config, "apps")["k8singress"] = structure.Tree(o.WithoutDefaults())
		return nil
	})
	return err
}
