package structure

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddytls"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
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
// handler: a handshake that fails does not say why.
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

// MaxSlots is how many sets of versions and ciphers Caddy's configuration has TLS policies for, besides those that are always
// there. Each of them makes every handshake a little slower, and everyone who may write an Ingress may ask for one.
const MaxSlots = 32

// Slots are the handshakes beyond the TLS versions alone that Caddy's configuration has policies for. The value is immutable.
type Slots []ir.Handshake

// Has says whether there is a policy for a handshake.
func (s Slots) Has(h *ir.Handshake) bool {
	return slices.ContainsFunc(s, func(have ir.Handshake) bool { return have.Name() == h.Name() })
}

// With adds the handshakes that hosts want. A policy that no host wants any more stays, because removing it would be a
// reload, unless its slot is needed. It returns the handshakes that found no slot. The one named global always finds one:
// no author of an Ingress is to take the slot of the ciphers that the administrator sets for all hosts.
func (s Slots) With(wanted Slots, global string) (next, refused Slots) {
	added := slices.DeleteFunc(slices.Clone(wanted), func(h ir.Handshake) bool { return s.Has(&h) })
	if len(added) == 0 {
		return s, nil
	}
	next = slices.Clone(s)
	if len(next)+len(added) > MaxSlots {
		next = slices.DeleteFunc(next, func(h ir.Handshake) bool { return !wanted.Has(&h) })
	}
	if i := slices.IndexFunc(added, func(h ir.Handshake) bool { return h.Name() == global }); i >= 0 {
		next, added = append(next, added[i]), slices.Delete(added, i, i+1)
	}
	free := min(max(MaxSlots-len(next), 0), len(added))
	return append(next, added[:free]...), added[free:]
}

// Equal says whether both have the same handshakes in the same order.
func (s Slots) Equal(other Slots) bool {
	return slices.EqualFunc(s, other, func(a, b ir.Handshake) bool { return a.Name() == b.Name() })
}

// Problems returns a verdict for each object that sets ciphers of handshakes that found no slot. onlyHTTP1 says that no host
// offers HTTP/2.
func (s Slots) Problems(virtualHosts []*ir.VirtualHost, onlyHTTP1 bool) []*report.Verdict {
	if len(s) == 0 {
		return nil
	}
	hosts := map[string][]string{}
	for _, h := range virtualHosts {
		if h.TLS == nil {
			continue
		}
		if wanted := h.TLS.Effective(onlyHTTP1); s.Has(&wanted) {
			hosts[h.TLSOrigin] = append(hosts[h.TLSOrigin], cmp.Or(h.Host, "every other host"))
		}
	}
	all := make([]*report.Verdict, 0, len(hosts))
	for _, origin := range slices.Sorted(maps.Keys(hosts)) {
		all = append(all, &report.Verdict{Object: ir.ParseRef(origin), Problems: []report.Problem{{
			Severity: report.Warning, Reason: report.QuotaExceeded, Field: report.AnnotationField(report.Ciphers),
			Message: fmt.Sprintf("there is room for %d different lists of ssl-ciphers, and other hosts have them all: %s gets Caddy's own "+
				"ciphers; use the same list as another Ingress", MaxSlots, strings.Join(hosts[origin], ", ")),
		}}})
	}
	return all
}
