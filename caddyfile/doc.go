// Package caddyfile is the Caddyfile's side of the ingress controller: the global option k8singress, the directive
// k8singress for sites, and the adapter that adds the servers and policies which the global option stands for.
package caddyfile

//go:generate go test -run ^TestReference$ -update
