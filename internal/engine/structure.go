package engine

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/panics"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// patching is the work on the structure. It waits for Caddy, so it has a goroutine of its own, one at a time.
type patching struct {
	running panics.Group
	ended   chan patched
	// again says to patch once more after the patch under way.
	underWay, again bool
}

// patched is the result of a patch.
type patched struct {
	changed bool
	err     error
}

// patchStructure begins to put our part of the structure into Caddy's configuration where it is missing.
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

// onPatched notes the result of a patch, and counts it if Caddy has loaded its configuration again.
func (l *loop) onPatched(ctx context.Context, m patched) {
	l.patching.underWay = false
	switch {
	case m.err != nil && ctx.Err() == nil:
		l.log.Error("applying the structure through Caddy's admin API; trying again", zap.Error(m.err))
		l.retry.arm()
	case m.err == nil && !l.live.Pending():
		l.retry.succeeded()
	}
	if m.err == nil && m.changed {
		l.metrics.reloads.Inc()
	}
	if l.patching.again {
		l.patchStructure(ctx)
	}
}

// structure puts our part into Caddy's configuration where it is missing or different. A Caddyfile has all of it from
// the start, so this is for who writes the JSON of the app alone. It returns whether Caddy had to load.
func (e *Engine) structure(ctx context.Context) (bool, error) {
	address := e.Settings().Admin
	if address == settings.AdminOff {
		// The configuration cannot be changed then, and the adapter has put everything into it.
		return false, nil
	}
	admin, err := apply.NewAdmin(address)
	if err != nil {
		return false, err
	}
	// Reading the configuration waits until Caddy has loaded it. The options may be others then.
	return admin.Change(ctx, func(config map[string]any) error {
		return structure.Merge(config, e.Settings())
	})
}

// LoadStructure makes a Caddy without our app one that takes documents: it puts the app with these options, and the
// structure that goes with them, into its configuration. admin is the address of its admin API.
func LoadStructure(ctx context.Context, admin string, o settings.Config) error {
	client, err := apply.NewAdmin(admin)
	if err != nil {
		return err
	}
	o.Source, o.Admin = nil, admin
	_, err = client.Change(ctx, func(config map[string]any) error {
		if err := structure.Merge(config, o); err != nil {
			return fmt.Errorf("the structure of the document does not fit: %w", err)
		}
		structure.Branch(config, "apps")["k8singress"] = structure.Tree(o.WithoutDefaults())
		return nil
	})
	return err
}
