package structure

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// always are the handshakes that cost nothing to have. With them, another ssl-protocols is no reason to reload.
var always = []ir.Handshake{
	{}, {TLSPolicy: ir.TLSPolicy{Version: ir.TLS12}}, {TLSPolicy: ir.TLSPolicy{Version: ir.TLS13}},
}

// connectionPolicies are the ways of a handshake there are: those that are always there, and the others in use. Which one a
// server name gets, the tables say for each handshake, so that a host changes from one to another without a reload. None of
// them catches all: a name that none of them takes is refused.
//
// Each is there twice, with and without a question for the certificate of the client. What a client shows is looked at by the
// handler: a handshake that fails tells nobody why.
func connectionPolicies(others []ir.Handshake) caddytls.ConnectionPolicies {
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b ir.Handshake) int { return cmp.Compare(a.Name(), b.Name()) })
	var policies caddytls.ConnectionPolicies
	for _, h := range slices.Concat(others, always) {
		policies = append(policies, connectionPolicy(&h, true), connectionPolicy(&h, false))
	}
	return policies
}

func connectionPolicy(h *ir.Handshake, asksClient bool) *caddytls.ConnectionPolicy {
	match := map[string]any{"policy": h.Name()}
	p := &caddytls.ConnectionPolicy{CipherSuites: h.Ciphers}
	if asksClient {
		match["client_auth"] = true
		p.ClientAuthentication = &caddytls.ClientAuthentication{Mode: "request"}
	}
	p.MatchersRaw = caddy.ModuleMap{"k8singress": document.Encode(match)}
	switch h.Version {
	case ir.TLS12:
		p.ProtocolMax = string(ir.TLS12)
	case ir.TLS13:
		p.ProtocolMin = string(ir.TLS13)
	}
	if h.OnlyHTTP1 {
		p.ALPN = []string{"http/1.1"}
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
