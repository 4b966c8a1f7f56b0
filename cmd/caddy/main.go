// Caddy is Caddy's own command with this module in it, for `go run` and for the image. Users of xcaddy do not need it.
package main

import (
	// Names of time zones, for the access log, on a system that has none: Caddy's own main has them, too.
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
)

func main() { caddycmd.Main() }
