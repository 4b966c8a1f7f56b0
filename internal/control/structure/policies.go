package structure

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// connectionPolicies returns one TLS connection policy for each combination of TLS versions. At each handshake, our
// matcher selects a policy by server name, so the TLS versions of a host can change without a reload. No policy matches
// every name, so handshakes for unknown names fail. Ciphers and ALPN protocols are not part of the policies, because
// they are set for each host during the handshake.
//
// In fact there are two policies for each combination of TLS versions: one requests a client certificate, the other one
// does not. The HTTP handler verifies the certificate, because the client would not see why a handshake failed.
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
