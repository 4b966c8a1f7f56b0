package k8singress

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/l4app"
)

// checkChains returns an error if a chain or stream chain of the configuration cannot be provisioned, or if a default
// chain does not exist. It provisions one copy of each chain and discards it. Ingresses get copies of their own when
// the configuration takes effect, so the check leaves the chains of the running configuration alone.
//
// The handlers of a chain may need other apps, as the handlers of a site do, so the check must not begin while the tls
// app is being provisioned. The first of these calls checks, and the other calls do nothing:
//
//   - Provision of the handler in the servers for Ingresses. By then, the tls app is complete.
//   - Provision of the app, through checkChainsWithoutServers.
//   - Start of the app. By then, all apps are complete.
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

// checkChainsWithoutServers checks the chains of a configuration that contains no servers for Ingresses, so that
// `caddy validate`, which does not start apps, finds wrong chains in it too. ctx is the context of Provision. If
// another app that is not complete yet has requested this app, the check is left to a later call of checkChains.
func (a *App) checkChainsWithoutServers(ctx caddy.Context) error {
	if len(a.config.Chains)+len(a.config.StreamChains)+len(a.config.DefaultChains) == 0 || len(ctx.Modules()) > 1 {
		return nil
	}
	// Provision the http app, and the tls app with it, because handlers in chains may look into them. If this fails,
	// return no error: Caddy itself reports the error of the http app.
	if _, err := ctx.AppIfConfigured("http"); err != nil && !errors.Is(err, caddy.ErrNotConfigured) {
		return nil
	}
	return a.checkChains()
}
