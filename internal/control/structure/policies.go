package structure

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// connectionPolicies returns one policy for each choice of TLS versions. The tables select the policy for each server
// name at each handshake, so a host can change its versions without a reload. No policy matches all names: a name
// without a match is rejected. Ciphers and ALPN protocols are only in the tables, not in the policies.
//
// Each policy exists twice, with and without a request for a client certificate. The HTTP handler verifies the
// certificate, because a failed handshake does not tell the client the reason.
func connectionPolicies() (policies caddytls.ConnectionPolicies) {
	for _, version := range []ir.TLSVersion{"", ir.TLS12, ir.TLS13} {
		policies = append(policies, connectionPolicy(version, true), connectionPolicy(version, false))
	}
	return policies
}

func connectionPolicy(version ir.TLSVersion, asksClient bool) *caddytls.ConnectionPolicy {
	match := map[string]any{"policy": (&ir.TLSPolicy{Version: version}).Versions()}
	p := &caddytls.ConnectionPolicy{}
	if asksClient {
		match["client_auth"] = true
		p.ClientAuthentication = &caddytls.ClientAuthentication{Mode: "request"}
	}
	p.MatchersRaw = caddy.ModuleMap{"k8singress": document.Encode(match)}
	switch version {
	case ir.TLS12:
		p.ProtocolMax = string(ir.TLS12)
	case ir.TLS13:
		p.ProtocolMin = string(ir.TLS13)
	}
	return p
}

// mergeTickets makes replicas share session ticket keys if the configuration has a shared storage.
func mergeTickets(config, tls map[string]any) {
	storage, _ := config["storage"].(map[string]any)
	if storage == nil || tls["session_tickets"] != nil {
		return
	}
	tls["session_tickets"] = Tree(map[string]any{"key_source": json.RawMessage(`{"provider":"distributed"}`)})
}
