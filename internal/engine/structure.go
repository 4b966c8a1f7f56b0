package engine

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// mend puts our part of the structure into Caddy's configuration where it is missing. It calls Caddy's admin API, which
// loads the configuration again if it was; that is counted.
func (e *Engine) mend(ctx context.Context) {
	changed, err := e.structure(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Error("applying the structure through Caddy's admin API; trying again", zap.Error(err))
			e.retry.failed()
		}
		return
	}
	if changed {
		e.metrics.reloads.WithLabelValues(structureReason).Inc()
	}
	if !e.live.Pending() {
		e.retry.succeeded()
	}
}

// structure puts our part into Caddy's configuration where it is missing or different. A Caddyfile has all of it from
// the start, so this is for who writes the JSON of the app alone. It returns whether Caddy had to load.
func (e *Engine) structure(ctx context.Context) (bool, error) {
	if e.settings.Admin == settings.AdminOff {
		// Nobody can change the configuration then, and the adapter has put everything into it.
		return false, nil
	}
	admin, err := apply.NewAdmin(e.settings.Admin)
	if err != nil {
		return false, err
	}
	defer admin.Close()
	return admin.Change(ctx, func(config map[string]any) error { return structure.Merge(config, e.settings) })
}

// LoadStructure makes a Caddy without our app one that takes documents: it puts the app with these options, and the
// structure that goes with them, into its configuration. admin is the address of its admin API.
func LoadStructure(ctx context.Context, admin string, o settings.Config) error {
	client, err := apply.NewAdmin(admin)
	if err != nil {
		return err
	}
	defer client.Close()
	o.Source, o.Admin = nil, admin
	_, err = client.Change(ctx, func(config map[string]any) error {
		if err := structure.Merge(config, o); err != nil {
			return fmt.Errorf("the structure of the document does not fit: %w", err)
		}
		branch(config, "apps")["k8singress"] = structure.Tree(o.WithoutDefaults())
		return nil
	})
	return err
}
