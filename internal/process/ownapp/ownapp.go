// Package ownapp finds the app k8singress for Caddy modules that administrators use outside of it.
package ownapp

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/ir"
)

// errMissing is returned if the configuration does not have the app.
var errMissing = errors.New("the app k8singress is not configured: add the global option k8singress to the Caddyfile")

// ForService returns the app k8singress of the configuration that ctx belongs to, for a module that reads the given
// Service. Unlike Context.App, it does not add the app to a configuration without it, because that app would have no
// source of objects. T is an interface with the methods that the module needs, or the type of the app.
func ForService[T any](ctx caddy.Context, service ir.ServicePort) (app T, err error) {
	found, err := ctx.AppIfConfigured("k8singress")
	if errors.Is(err, caddy.ErrNotConfigured) {
		err = errMissing
	}
	if err != nil {
		return app, fmt.Errorf("reading the Service %s: %w", service, err)
	}
	return found.(T), nil
}
