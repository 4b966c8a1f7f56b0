// Package caddyfile implements the Caddyfile support of the ingress controller: the global option k8singress, the
// directive k8singress for sites, and the adapter that adds the servers and policies for the global option.
package caddyfile

//go:generate go test -run ^TestReference$ -update
