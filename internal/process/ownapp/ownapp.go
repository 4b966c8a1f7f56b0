// Package ownapp finds the app k8singress for Caddy modules that administrators use outside of it.
package ownapp

import (
	"errors"

	"github.com/caddyserver/caddy/v2"
)

// errMissing is returned if the configuration does not have the app.
var errMissing = errors.New("the app k8singress is not configured: add the global option k8singress to the Caddyfile")

// Of returns the app k8singress of the configuration that ctx belongs to. Unlike Context.App, it does not add the app
// to a configuration without it, because that app would have no source of objects. T is an interface with the methods
// that the module needs, or the type of the app.
func Of[T any](ctx caddy.Context) (app T, err error) {
	found, err := ctx.AppIfConfigured("k8singress")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return app, errMissing
	}
	if err != nil {
		return app, err
	}
	return found.(T), nil
}
