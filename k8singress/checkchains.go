package k8singress

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/l4app"
)

// checkChains returns an error if a chain or stream chain of the configuration cannot be provisioned, or if a default
// chain does not exist. It provisions one copy of each chain and discards it. Ingresses get copies of their own when
// the configuration takes effect, so the check leaves the chains of the running configuration alone. Only the first
// call checks, and the other calls do nothing.
func (a *App) checkChains() error {
	if a.chainsChecked {
		return nil
	}
	a.chainsChecked = true
	trial, cancel := caddy.NewContext(a.ctx)
	defer cancel()
	for _, name := range slices.Sorted(maps.Keys(a.config.Chains)) {
		if _, err := loadChain(trial, name); err != nil {
			return err
		}
	}
	for _, d := range a.config.DefaultChains {
		if _, ok := a.config.Chains[d.Chain]; !ok {
			return fmt.Errorf("default_chains of the k8singress app: there is no chain %q", d.Chain)
		}
	}
	return l4app.CheckStreamChains(a.ctx, a.config.StreamChains)
}

// CheckChains checks the chains while the apps of the configuration are being provisioned, so that `caddy validate`,
// which does not start apps, finds wrong chains too. ctx is the context of the module that is being provisioned. Each
// module that requests the app must call it, because Caddy provisions the apps in random order.
//
// The handlers of a chain may need other apps, as the handlers of a site do. So while the tls app is being provisioned,
// which requests this app for its certificates, CheckChains leaves the check to a module of the http or layer4 app that
// requests the app later. If no module does, Start checks.
func (a *App) CheckChains(ctx caddy.Context) error {
	c := &a.config
	if a.chainsChecked || len(c.Chains)+len(c.StreamChains)+len(c.DefaultChains) == 0 || insideTLS(ctx) {
		return nil
	}
	// Provision the http app, and the tls app with it, because handlers in chains may look into them. If this fails,
	// return no error: Caddy itself reports the error of the http app.
	if _, err := ctx.AppIfConfigured("http"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil
	}
	return a.checkChains()
}

// insideTLS reports whether the module that is being provisioned with ctx is a part of the tls app.
func insideTLS(ctx caddy.Context) bool {
	return slices.ContainsFunc(ctx.Modules(), func(m caddy.Module) bool {
		_, ok := m.(*caddytls.TLS)
		return ok
	})
}
