// Caddy is Caddy's own command with this module in it, for `go run` and for the image. Users of xcaddy do not need it.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
)

func main() { caddycmd.Main() }
