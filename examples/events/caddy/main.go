// Command caddy is Caddy's command with the ingress controller and the event handler of this example.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/k8singress/k8singress"
	_ "github.com/k8singress/k8singress/examples/events"
)

func main() { caddycmd.Main() }
