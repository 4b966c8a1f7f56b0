package engine

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/apply"
	"github.com/k8singress/k8singress/internal/settings"
	"github.com/k8singress/k8singress/internal/structure"
)

// mending is the work on the structure. It waits for Caddy, so it has a goroutine of its own, one at a time; the loop
// has the rest.
type mending struct {
	running sync.WaitGroup
	ended   chan mended
	// again says that it is to be done once more after the one under way, and why.
	underWay bool
	again    string
}

// mended is how it ended.
type mended struct {
	reason  string
	changed bool
	err     error
}

// mend begins to put our part of the structure into Caddy's configuration where it is missing. The reason is for who counts.
func (e *Engine) mend(ctx context.Context, reason string) {
	m := &e.mending
	if m.underWay {
		m.again = reason
		return
	}
	m.underWay, m.again = true, ""
	m.running.Go(func() {
		changed, err := e.structure(ctx)
		m.ended <- mended{reason, changed, err}
	})
}

// hasMended notes how it ended. Caddy has loaded its configuration again if that was changed; that is counted.
func (e *Engine) hasMended(ctx context.Context, m mended) {
	e.mending.underWay = false
	switch {
	case m.err != nil && ctx.Err() == nil:
		e.log.Error("applying the structure through Caddy's admin API; trying again", zap.Error(m.err))
		e.retry.arm()
	case m.err == nil && !e.live.Pending():
		e.retry.succeeded()
	}
	if m.err == nil && m.changed {
		e.metrics.reloads.WithLabelValues(m.reason).Inc()
	}
	if again := e.mending.again; again != "" {
		e.mend(ctx, again)
	}
}

// structure puts our part into Caddy's configuration where it is missing or different. A Caddyfile has all of it from
// the start, so this is for who writes the JSON of the app alone. It returns whether Caddy had to load.
func (e *Engine) structure(ctx context.Context) (bool, error) {
	address := e.Settings().Admin
	if address == settings.AdminOff {
		// Nobody can change the configuration then, and the adapter has put everything into it.
		return false, nil
	}
	admin, err := apply.NewAdmin(address)
	if err != nil {
		return false, err
	}
	defer admin.Close()
	// Reading the configuration waits until Caddy has loaded it. The options may be others then.
	return admin.Change(ctx, func(config map[string]any) error {
		return structure.Merge(config, e.Settings(), *e.offered.Load()...)
	})
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
