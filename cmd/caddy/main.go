// Command caddy is Caddy's command with the ingress controller module included. It is used for `go run` and in the
// container image, so it also works under the names of ingress-nginx's programs. Users of xcaddy do not need it: xcaddy
// generates such a command.
package main

import (
	// Embed the time zone database for systems that lack it, because the access log can use time zones. Caddy's own
	// main package does the same.
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
	_ "github.com/k8singress/k8singress/ingressnginx"
)

func main() { caddycmd.Main() }
