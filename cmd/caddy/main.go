// Command caddy is Caddy's own command with this module included, for `go run` and for the container image. Users of
// xcaddy do not need it.
package main

import (
	// This embeds the time zone database for the access log, for systems without one. Caddy's own main package imports
	// it, too.
	_ "time/tzdata"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
)

func main() { caddycmd.Main() }
