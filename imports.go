// Package k8singress makes a Caddy binary a Kubernetes ingress controller. Importing it registers all of its modules:
//
//	xcaddy build --with github.com/k8singress/k8singress
package k8singress
