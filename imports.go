// Package k8singress makes a Caddy binary a Kubernetes ingress controller. Importing it registers all of its modules:
//
//	xcaddy build --with github.com/k8singress/k8singress
package k8singress

import (
	// These are the modules of this project, and the modules of caddy-l4 that its TCP and UDP ports use.
	_ "github.com/mholt/caddy-l4"

	_ "github.com/k8singress/k8singress/caddyfile"
	_ "github.com/k8singress/k8singress/k8singress"
	_ "github.com/k8singress/k8singress/l4app"
)
