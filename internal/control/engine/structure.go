package engine

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/control/apply"
	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/process/panics"
)

// patching is the state of changes to the structure. A change waits for Caddy, so it runs on its own goroutine, one at
// a time.
type patching struct {
	running panics.Group
	ended   chan patched
	// underWay is set while a change is running. again is set if another change must follow it.
	underWay, again bool
}

// patched is the result of a change to the structure.
type patched struct {
	changed bool
	err     error
}

// patchStructure starts adding the missing parts of our structure to Caddy's configuration.
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

// onPatched handles the result of patchStructure. It counts a reload if Caddy has loaded its configuration again.
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
	if l.patching.again {
		l.patchStructure(ctx)
	}
}

// patchFailed logs an error once at error level, and repetitions at debug level. It schedules a retry.
func (l *loop) patchFailed(err error) {
	level, text := zap.ErrorLevel, err.Error()
	if before := l.patchFailure.Swap(&text); before != nil && *before == text {
		level = zap.DebugLevel
	}
	l.log.Log(level, "cannot add the controller's servers to Caddy's configuration; trying again", zap.Error(err))
	l.retry.arm()
}

// structure adds the missing or different parts of our structure to Caddy's configuration. A Caddyfile always contains
// all of it, so this is for JSON configurations that contain only the app. It reports whether Caddy had to reload.
func (e *Engine) structure(ctx context.Context) (bool, error) {
	address := adminAddress(e.Settings())
	if address == settings.AdminOff {
		return false, e.complete()
	}
	admin, err := apply.NewAdmin(address)
	if err != nil {
		return false, err
	}
	// Read the settings inside: reading the configuration waits until Caddy has loaded it, and the options may have
	// changed by then.
	return admin.Change(ctx, func(config map[string]any) error {
		return structure.Merge(config, e.Settings())
	})
}

// complete returns an error if a server is missing from a configuration that cannot be changed.
func (e *Engine) complete() error {
	missing := missingServer(e.Settings(), front.Process().Expects)
	if missing == "" {
		return nil
	}
	return fmt.Errorf(
		"the configuration has no server for the option %s, and it cannot be added because Caddy's admin API is "+
			"off: use a Caddyfile instead of JSON, or remove \"disabled\" of \"admin\", and \"admin\" of the app "+
			"k8singress",
		missing)
}

// missingServer returns the first option with addresses whose server is missing, or "".
func missingServer(o settings.Config, isThere func(server string) bool) string {
	switch {
	case len(o.HTTP) > 0 && !isThere(structure.HTTPServer):
		return "http"
	case len(o.HTTPS) > 0 && !isThere(structure.HTTPSServer):
		return "https"
	}
	return ""
}

// LoadStructure adds our app, with the given options and the structure for them, to a running Caddy that lacks it. The
// app then accepts documents. admin is the address of Caddy's admin API.
func LoadStructure(ctx context.Context, admin string, o settings.Config) error {
	client, err := apply.NewAdmin(admin)
	if err != nil {
		return err
	}
	o.Source, o.Admin = nil, admin
	_, err = client.Change(ctx, func(config map[string]any) error {
		if err := structure.Merge(config, o); err != nil {
			return fmt.Errorf("the servers of the document conflict with the configuration: %w", err)
		}
		structure.Branch(config, "apps")["k8singress"] = structure.Tree(o.WithoutDefaults())
		return nil
	})
	return err
}
