package structure

import (
	"encoding/json"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// connectionPolicies are one for each choice of TLS versions. Which one a server name gets, the tables say for each handshake, so that
// a host changes from one to another without a reload. None of them catches all: a name that none of them takes is refused. Ciphers
// and protocols are the tables' alone, and stand in no policy.
//
// Each is there twice, with and without a question for the certificate of the client. What a client shows is looked at by the
// handler: a handshake that fails does not say why.
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

// mergeTickets lets replicas share the keys of session tickets, if the configuration says where they share other things.
func mergeTickets(config, tls map[string]any) {
	storage, _ := config["storage"].(map[string]any)
	if storage == nil || tls["session_tickets"] != nil {
		return
	}
	tls["session_tickets"] = Tree(map[string]any{"key_source": json.RawMessage(`{"provider":"distributed"}`)})
}
