package structure

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// connectionPolicies are the ways of a handshake there are. Which one a server name gets is asked of the tables for each
// handshake, so that a host changes from one to the other without a reload. A certificate that a client shows is looked at by
// the handler: a handshake that fails tells nobody why.
func connectionPolicies() caddytls.ConnectionPolicies {
	return caddytls.ConnectionPolicies{
		{
			MatchersRaw:          caddy.ModuleMap{"k8singress": json.RawMessage(`{"client_auth":true}`)},
			ClientAuthentication: &caddytls.ClientAuthentication{Mode: "request"},
		},
		{},
	}
}
