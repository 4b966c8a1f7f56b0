package caddyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// serverKeys lists the settings of a Caddy server that take effect on our servers if the global option servers sets
// them.
var serverKeys = []string{
	"client_ip_headers", "idle_timeout", "keepalive_count", "keepalive_idle", "keepalive_interval", "max_header_bytes",
	"protocols", "read_header_timeout", "read_idle_timeout", "read_timeout", "strict_sni_host", "trusted_proxies",
	"trusted_proxies_strict", "trusted_proxies_unix", "write_idle_timeout", "write_timeout",
}

// otherServerKeys lists the settings of a Caddy server that take effect in another way, or that turn off what is always
// off.
var otherServerKeys = []string{"allow_0rtt", "listener_wrappers", "logs"}

// addServerOptions adds the settings of the global option servers to our servers in config, as Caddy does for the
// servers of sites. c holds the options of the controller. It returns a warning for each block with settings that have
// no effect.
func addServerOptions(config map[string]any, global []caddyfile.Segment, c settings.Config) (
	all []caddyconfig.Warning, err error) {
	c = c.WithDefaults()
	for _, of := range []struct {
		server string
		listen []string
	}{{structure.HTTPServer, c.HTTP}, {structure.HTTPSServer, c.HTTPS}} {
		options := serversFor(of.listen, global)
		if options == nil || len(of.listen) == 0 {
			continue
		}
		found, err := serverSettings(options)
		if err != nil {
			return nil, err
		}
		if of.server == structure.HTTPServer {
			found.withoutTLS()
		}
		server, err := structure.Child(config, "apps", "http", "servers", of.server)
		if err != nil {
			return nil, err
		}
		for _, key := range serverKeys {
			if value, ok := found[key]; ok {
				server[key] = value
			}
		}
		if wrappers, ok := found["listener_wrappers"].([]any); ok {
			server["listener_wrappers"] = structure.WithWrappers(wrappers)
			if fix := fixForHeader(wrappers); fix != "" && of.server == structure.HTTPSServer {
				all = append(all, serversWarning(options, headerAfterTLS+fix))
			}
		}
		if ignored := found.ignored(); ignored != "" {
			w := serversWarning(options, ignored+" of the global option servers has no effect for hosts of Ingresses")
			all = append(slices.DeleteFunc(all, func(o caddyconfig.Warning) bool { return o == w }), w)
		}
	}
	return append(all, unknownAddresses(config, global, slices.Concat(c.HTTP, c.HTTPS))...), nil
}

const headerAfterTLS = "the listener wrapper proxy_protocol gets connections after the TLS handshake, but load " +
	"balancers send the PROXY protocol header before it, so HTTPS fails: "

// fixForHeader says what to change if the listener wrapper proxy_protocol gets connections after the TLS handshake.
// This is the case without the wrapper tls, too. Otherwise, it returns "".
func fixForHeader(wrappers []any) string {
	index := func(name string) int {
		return slices.IndexFunc(wrappers, func(w any) bool {
			module, _ := w.(map[string]any)
			return module["wrapper"] == name
		})
	}
	switch tls := index("tls"); {
	case index("proxy_protocol") <= tls:
		return ""
	case tls < 0:
		return "add the line tls after proxy_protocol"
	}
	return "move the line tls behind proxy_protocol"
}

func serversWarning(servers caddyfile.Segment, message string) caddyconfig.Warning {
	return caddyconfig.Warning{File: servers[0].File, Line: servers[0].Line, Directive: "servers", Message: message}
}

// unknownAddresses returns a warning for each block of the global option servers with an address that no server has.
// ours lists the addresses of our servers.
func unknownAddresses(config map[string]any, global []caddyfile.Segment, ours []string) (all []caddyconfig.Warning) {
	known := slices.Clone(ours)
	for _, s := range structure.Branch(config, "apps", "http", "servers") {
		server, _ := s.(map[string]any)
		listen, _ := server["listen"].([]any)
		for _, address := range listen {
			text, _ := address.(string)
			known = append(known, text)
		}
	}
	for _, segment := range global {
		if address := addressOf(segment); address != "" && !slices.ContainsFunc(known, sameAs(address)) {
			all = append(all, serversWarning(segment, fmt.Sprintf(
				"the global option servers has no effect, because no server listens on %s: the servers listen on %s",
				address, strings.Join(slices.Compact(slices.Sorted(slices.Values(known))), ", "))))
		}
	}
	return all
}

// addressOf returns the address in a global option servers. It returns "" if the option has no address, and for other
// options.
func addressOf(segment caddyfile.Segment) string {
	if segment.Directive() != "servers" {
		return ""
	}
	d := caddyfile.NewDispenser(segment)
	d.Next()
	address := ""
	d.Args(&address)
	return address
}

// serversFor returns the block of the global option servers that applies to a server with the given listen addresses,
// or nil if no block applies. As in Caddy, the block with the longest address of the server applies alone, and a block
// without an address only applies if there is no other block.
func serversFor(listen []string, global []caddyfile.Segment) (found caddyfile.Segment) {
	for _, segment := range global {
		address := addressOf(segment)
		if segment.Directive() == "servers" && (address == "" || slices.ContainsFunc(listen, sameAs(address))) &&
			(found == nil || len(address) > len(addressOf(found))) {
			found = segment
		}
	}
	return found
}

// sameAs returns a function that reports whether an address is the given one, which may be written in another way.
func sameAs(address string) func(string) bool {
	parsed, err := caddy.ParseNetworkAddress(address)
	return func(other string) bool {
		parsedOther, otherErr := caddy.ParseNetworkAddress(other)
		return err == nil && otherErr == nil && parsed == parsedOther
	}
}

// jsonServer holds settings of a Caddy server by their names in JSON.
type jsonServer map[string]any

// serverSettings returns the settings that Caddy gives a server for a block of the global option servers. It lets Caddy
// adapt the supported options of the block together with an empty site.
func serverSettings(servers caddyfile.Segment) (jsonServer, error) {
	open := slices.IndexFunc(servers, func(t caddyfile.Token) bool { return t.Text == "{" })
	if open < 0 {
		return nil, nil
	}
	block := caddyfile.Segment{servers[0], servers[open]}
	for _, option := range optionsIn(servers) {
		if o := findCaddyOption("servers " + option.Directive()); o != nil && o.Fate == works &&
			option.Directive() != "name" { // Caddy needs an address for it. See withServerNames.
			block = append(block, option...)
		}
	}
	sites, err := caddyfile.Parse("", []byte("http:// {\n}\n"))
	if err != nil {
		return nil, err
	}
	global := caddyfile.ServerBlock{HasBraces: true,
		Segments: []caddyfile.Segment{append(block, servers[len(servers)-1])}}
	adapted, _, err := httpcaddyfile.ServerType{}.Setup(append([]caddyfile.ServerBlock{global}, sites...), nil)
	if err != nil {
		return nil, err
	}
	var app caddyhttp.App
	if err := json.Unmarshal(adapted.AppsRaw["http"], &app); err != nil {
		return nil, fmt.Errorf("decoding the options of servers: %w", err)
	}
	for _, server := range app.Servers {
		found := jsonServer(structure.Tree(server))
		for _, key := range []string{"listen", "routes", "automatic_https"} {
			delete(found, key)
		}
		return found, found.checkProxies(servers)
	}
	return nil, nil
}

// checkProxies returns an error if trusted_proxies has a value that is not a network, which Caddy would only report
// when it loads the configuration.
func (s jsonServer) checkProxies(servers caddyfile.Segment) error {
	source, _ := s["trusted_proxies"].(map[string]any)
	ranges, _ := source["ranges"].([]any)
	for _, network := range ranges {
		text, _ := network.(string)
		if _, err := caddyhttp.CIDRExpressionToPrefix(text); source["source"] == "static" && err != nil {
			return fmt.Errorf("%s:%d: trusted_proxies of the global option servers: %q is not a network: write "+
				"addresses, networks such as 192.0.2.0/24, or private_ranges", servers[0].File, servers[0].Line, text)
		}
	}
	return nil
}

// withoutTLS removes protocols that need TLS, because Caddy would log a warning for each of them. It keeps the list if
// it contains no other protocols.
func (s jsonServer) withoutTLS() {
	protocols, _ := s["protocols"].([]any)
	plain := slices.DeleteFunc(slices.Clone(protocols), func(p any) bool { return p == "h2" || p == "h3" })
	if len(plain) > 0 {
		s["protocols"] = plain
	}
}

// ignored returns the names of settings that have no effect on our servers, separated by commas.
func (s jsonServer) ignored() string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(key string) bool {
		return slices.Contains(serverKeys, key) || slices.Contains(otherServerKeys, key)
	}), ", ")
}
