// Package caddyfile implements the Caddyfile support of the ingress controller: the global option k8singress, the
// directive k8singress for sites, and the adapter that adds the controller's servers and TLS policies to the
// configuration.
package caddyfile

//go:generate go test -run ^TestReference$ -update
