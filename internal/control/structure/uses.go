package structure

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/netaddr"
)

// Use is a port of a Service that the administrator's configuration of Caddy uses, although no Kubernetes object refers
// to it.
type Use struct {
	ir.FollowedPort
	// By describes the part of the configuration that uses the port, such as "layer4 server srv0, which listens on
	// :5432".
	By string
	// Match describes the matchers of caddy-l4 that a connection has to pass before it uses the port, such as
	// "postgres" or `tls {"sni":["a.example"]}`. Each element describes one route. Routes without matchers are left
	// out.
	Match []string
}

func (u Use) compare(other Use) int {
	return cmp.Or(u.FollowedPort.Compare(other.FollowedPort), slices.Compare(u.Match, other.Match))
}

// Uses returns the ports of Services that handlers of caddy-l4, and upstreams of reverse_proxy, use anywhere in a
// configuration of Caddy: in layer4 servers, in sites, and in the chains of our options. It returns an error if the
// name of a Service is invalid, because Caddy would reject the configuration, and if the handler of caddy-l4 would get
// only datagrams, because it forwards none.
func Uses(config map[string]any) ([]Use, error) {
	var all []Use
	for _, part := range partsOf(config) {
		u := uses{by: part.by, layer4: part.layer4}
		u.find(part.config)
		if u.err != nil {
			return nil, u.err
		}
		if len(u.all) > 0 && part.datagrams {
			return nil, fmt.Errorf("%s: the handler k8singress forwards TCP connections only, and would drop all "+
				"datagrams: use the option udp_services, or the annotation k8singress.io/udp-ports of the Service %s",
				part.by, u.all[0].Service)
		}
		slices.SortFunc(u.all, Use.compare)
		all = append(all, slices.CompactFunc(u.all, func(a, b Use) bool { return a.compare(b) == 0 })...)
	}
	return all, nil
}

// Followed returns the ports in uses, sorted and without duplicates.
func Followed(all []Use) []ir.FollowedPort {
	ports := make([]ir.FollowedPort, len(all))
	for i := range all {
		ports[i] = all[i].FollowedPort
	}
	slices.SortFunc(ports, ir.FollowedPort.Compare)
	return slices.Compact(ports)
}

// part is a part of a configuration that messages name. layer4 is true if its routes are caddy-l4's, and datagrams if
// it listens only on UDP addresses.
type part struct {
	by                string
	layer4, datagrams bool
	config            any
}

// partsOf returns the servers of a configuration, and the chains of our options, sorted by name.
func partsOf(config map[string]any) (all []part) {
	for _, app := range []string{appLayer4, appHTTP} {
		servers := Branch(config, "apps", app, "servers")
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			server, _ := servers[name].(map[string]any)
			by := describe(app, name, server)
			listen := texts(server["listen"])
			if len(listen) > 0 {
				by += ", which listens on " + listen[0]
			}
			layer4 := app == appLayer4
			all = append(all, part{by, layer4, layer4 && onlyUDP(listen), server})
		}
	}
	for _, option := range []struct{ key, word string }{{"chains", "chain"}, {"stream_chains", "stream chain"}} {
		chains := Branch(config, "apps", "k8singress", option.key)
		for _, name := range slices.Sorted(maps.Keys(chains)) {
			all = append(all, part{"the " + option.word + " " + name, option.key == "stream_chains", false,
				chains[name]})
		}
	}
	return all
}

// onlyUDP reports whether all of the addresses are UDP addresses. An address with a placeholder may be any.
func onlyUDP(addresses []string) bool {
	for _, address := range addresses {
		parsed, err := caddy.ParseNetworkAddress(address)
		if err != nil || netaddr.Transport(parsed.Network) != "udp" {
			return false
		}
	}
	return len(addresses) > 0
}

// uses collects the ports that one part of a configuration uses.
type uses struct {
	by string
	// layer4 is whether find is among routes of caddy-l4. match describes the matchers of the routes around it.
	layer4 bool
	match  []string
	all    []Use
	err    error
}

// find adds the ports in a decoded JSON value. Other modules can contain our modules at any depth, for example the
// handler subroute, and the upstreams multi.
func (u *uses) find(value any) {
	switch of := value.(type) {
	case []any:
		for _, each := range of {
			u.find(each)
		}
	case map[string]any:
		defer u.enter(of)()
		isOurs := of["handler"] == "k8singress" || of["source"] == "k8singress"
		if service, ok := of["service"].(string); ok && isOurs {
			u.add(service)
		}
		for _, key := range slices.Sorted(maps.Keys(of)) {
			u.find(of[key])
		}
	}
}

// enter adds the matchers of a route of caddy-l4, which may be in the listener wrapper layer4. It returns a function
// that removes them.
func (u *uses) enter(of map[string]any) (leave func()) {
	before := *u
	u.layer4 = u.layer4 || of["wrapper"] == appLayer4
	if sets, ok := of["match"].([]any); ok && u.layer4 && of["handle"] != nil && len(sets) > 0 {
		u.match = append(slices.Clip(u.match), matchText(sets))
	}
	return func() { u.layer4, u.match = before.layer4, before.match }
}

// matchText describes matcher sets. A connection has to match all matchers of one of the sets.
func matchText(sets []any) string {
	var all []string
	for _, set := range sets {
		matchers, _ := set.(map[string]any)
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(matchers)) {
			settings := string(document.Encode(matchers[name]))
			if slices.Contains([]string{"{}", "[]", "null"}, settings) {
				parts = append(parts, name)
			} else {
				parts = append(parts, name+" "+settings)
			}
		}
		all = append(all, strings.Join(parts, " and "))
	}
	return strings.Join(all, ", or ")
}

func (u *uses) add(service string) {
	port, err := ir.ParseServicePort(service)
	if err != nil {
		if u.err == nil {
			u.err = fmt.Errorf("%s: the service %w", u.by, err)
		}
		return
	}
	u.all = append(u.all, Use{FollowedPort: ir.FollowedPort{ServicePort: port, Protocol: ir.TCP}, By: u.by,
		Match: u.match})
}
