package snippets

import (
	"cmp"
	"net"
	"slices"
	"strings"
)

// maxEntries is the maximum number of entries that StreamEntries returns.
const maxEntries = 10

// StreamEntries returns the entries of the ConfigMaps for TCP and UDP ports (options tcp_services and udp_services)
// that replace the servers of a stream-snippet, such as `"6379": shop/redis:6379`. If the text cannot be parsed, there
// are no entries. NAMESPACE, SERVICE and PORT stand for parts that the snippet does not name.
func StreamEntries(text string) (tcp, udp []string) {
	directives, err := Parse(text)
	if err != nil {
		return nil, nil
	}
	upstreams := map[string]string{}
	for _, d := range named(directives, "upstream") {
		if servers := named(d.Block, "server"); len(d.Args) == 1 && len(servers) > 0 && len(servers[0].Args) > 0 {
			upstreams[d.Args[0]] = servers[0].Args[0]
		}
	}
	for _, server := range named(directives, "server") {
		target := ""
		if pass := named(server.Block, "proxy_pass"); len(pass) > 0 && len(pass[0].Args) == 1 {
			target = cmp.Or(upstreams[pass[0].Args[0]], pass[0].Args[0])
		}
		sends := slices.ContainsFunc(named(server.Block, "proxy_protocol"),
			func(d Directive) bool { return slices.Equal(d.Args, []string{"on"}) })
		for _, listen := range named(server.Block, "listen") {
			entry := streamEntry(listen.Args, serviceOf(target), sends)
			switch {
			case entry == "" || len(tcp)+len(udp) == maxEntries:
			case slices.Contains(listen.Args, "udp"):
				udp = append(udp, entry)
			default:
				tcp = append(tcp, entry)
			}
		}
	}
	return tcp, udp
}

// streamEntry returns the entry for the arguments of a directive listen. sends is true if the endpoints get a PROXY
// protocol header. It returns "" if nginx listens on a Unix socket.
func streamEntry(listen []string, service string, sends bool) string {
	if len(listen) == 0 || strings.HasPrefix(listen[0], "unix:") {
		return ""
	}
	port := listen[0][strings.LastIndexByte(listen[0], ':')+1:]
	accepts := slices.Contains(listen, "proxy_protocol")
	switch {
	case sends && accepts:
		service += ":PROXY:PROXY"
	case sends:
		service += "::PROXY"
	case accepts:
		service += ":PROXY"
	}
	return `"` + port + `": ` + service
}

// serviceOf returns the Service in a target of proxy_pass, such as "redis.shop.svc.cluster.local:6379", as
// namespace/service:port.
func serviceOf(target string) string {
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return "NAMESPACE/SERVICE:PORT"
	}
	name, rest, _ := strings.Cut(host, ".")
	namespace, zone, _ := strings.Cut(rest, ".")
	if zone != "svc" && !strings.HasPrefix(zone, "svc.") {
		return "NAMESPACE/SERVICE:" + port
	}
	return namespace + "/" + name + ":" + port
}

// The function named returns the directives with the given name.
func named(all []Directive, name string) []Directive {
	return slices.DeleteFunc(slices.Clone(all), func(d Directive) bool { return d.Name != name })
}
