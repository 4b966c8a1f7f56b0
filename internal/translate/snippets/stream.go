package snippets

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// Stream returns the findings for a text with TCP and UDP servers, which is never applied. The finding for a server
// contains the entries of the ConfigMaps for TCP and UDP ports (options tcp_services and udp_services) that replace it,
// such as `"6379": shop/redis:6379`. Other findings say which lines these entries do not replace. shared is true for
// the text of the ConfigMap.
func Stream(text string, shared bool) []Finding {
	directives, err := Parse(text)
	if err != nil {
		return []Finding{syntaxError(err, shared)}
	}
	r := streamReader{shared: shared, upstreams: map[string]string{}}
	for _, d := range named(directives, "upstream") {
		servers := named(d.Block, "server")
		if len(d.Args) > 0 && len(servers) > 0 && len(servers[0].Args) > 0 {
			r.upstreams[d.Args[0]] = servers[0].Args[0]
		}
	}
	for i := range directives {
		// The user reads no more problems of a text.
		if len(r.findings) > maxErrors {
			break
		}
		switch d := &directives[i]; d.Name {
		case "server":
			r.server(d)
		case "upstream":
			r.upstream(d)
		default:
			r.leftOut(d)
		}
	}
	return r.findings
}

// streamReader holds the findings for a text with TCP and UDP servers.
type streamReader struct {
	shared   bool
	findings []Finding
	// upstreams maps the names of upstreams to the address of their first server.
	upstreams map[string]string
}

// finding returns a finding of class LeftOut for a directive.
func (r *streamReader) finding(d *Directive, reason string) Finding {
	return Finding{Place: Place{Shared: r.shared, Line: d.Line}, Directive: d.Name,
		Class: LeftOut, Text: sentence(quote(d.Name), LeftOut, reason)}
}

// add adds a finding of class LeftOut for a directive.
func (r *streamReader) add(d *Directive, reason string) {
	r.findings = append(r.findings, r.finding(d, reason))
}

// upstream adds the findings for the lines of an upstream, except its first server.
func (r *streamReader) upstream(d *Directive) {
	first := true
	for i := range d.Block {
		switch in := &d.Block[i]; {
		case in.Name != "server":
			r.leftOut(in)
		case !first:
			r.add(in, "a port forwards to one Service: let its selector select all pods")
		default:
			first = false
		}
	}
}

// server adds the finding for a server, and the findings for the lines that its entries do not replace.
func (r *streamReader) server(d *Directive) {
	passes := named(d.Block, "proxy_pass")
	if len(passes) == 0 || len(passes[0].Args) == 0 {
		r.add(d, "an entry for a port names a Service, and this server has no proxy_pass")
		return
	}
	target := cmp.Or(r.upstreams[passes[0].Args[0]], passes[0].Args[0])
	service := serviceOf(target)
	sends := slices.ContainsFunc(named(d.Block, "proxy_protocol"),
		func(d Directive) bool { return slices.Equal(d.Args, []string{"on"}) })
	first, ports := len(r.findings), map[string][]string{}
	for _, listen := range named(d.Block, "listen") {
		port, reason := portToOpen(listen.Args)
		if reason != "" {
			r.add(&listen, reason)
		}
		if port != "" {
			option := "tcp_services"
			if slices.Contains(listen.Args, "udp") {
				option = "udp_services"
			}
			ports[option] = append(ports[option], fmt.Sprintf("%q: %s", port,
				service+proxyFlags(slices.Contains(listen.Args, "proxy_protocol"), sends)))
		}
	}
	r.findings = slices.Insert(r.findings, first, r.finding(d, replacement(ports)))
	if strings.HasPrefix(service, "NAMESPACE/") && len(ports) > 0 {
		r.add(&passes[0], fmt.Sprintf("%s is not the name of a Service, such as db.shop.svc.cluster.local:5432: write "+
			"a Service in place of NAMESPACE/SERVICE", nginx.Quote(target)))
	}
	for i := range d.Block {
		if in := &d.Block[i]; !slices.Contains([]string{"listen", "proxy_pass", "proxy_protocol"}, in.Name) {
			r.leftOut(in)
		}
	}
}

// replacement tells the user where to write the entries, which are grouped by the option that names their ConfigMap.
func replacement(entries map[string][]string) string {
	if len(entries) == 0 {
		return "it listens on no port that an entry for TCP or UDP ports can open"
	}
	var all []string
	for _, option := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, fmt.Sprintf("add %s to the ConfigMap of the option %s",
			strings.Join(slices.Compact(entries[option]), ", "), option))
	}
	return strings.Join(all, ", and ")
}

// portToOpen returns the port in the arguments of listen, or "" if an entry cannot open it. reason says what the entry
// does not do. It is empty if the entry does the same.
func portToOpen(args []string) (port, reason string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "unix:") {
		return "", "clients cannot reach a socket without a port"
	}
	host := ""
	at := strings.LastIndexByte(args[0], ':')
	if port = args[0][at+1:]; at > 0 {
		host = args[0][:at]
	}
	switch _, err := strconv.ParseUint(port, 10, 16); {
	case err != nil:
		return "", "write one entry for each port, from 1 to 65535"
	case slices.Contains(args[1:], "ssl"):
		return port, "the entry does not terminate TLS: use the annotation k8singress.io/stream-tls-secret of " +
			"the Service"
	case !slices.Contains([]string{"", "*", "0.0.0.0", "[::]"}, host):
		return port, "the entry opens the port on all addresses of the controller, not only on " + nginx.Quote(host)
	}
	return port, ""
}

// proxyFlags returns the end of an entry. accepts is true if clients send a PROXY protocol header, and sends is true if
// endpoints get one.
func proxyFlags(accepts, sends bool) string {
	switch {
	case accepts && sends:
		return ":PROXY:PROXY"
	case sends:
		return "::PROXY"
	case accepts:
		return ":PROXY"
	}
	return ""
}

// serviceOf returns the Service in a target of proxy_pass, such as "redis.shop.svc.cluster.local:6379", as
// namespace/service:port. NAMESPACE, SERVICE and PORT stand for the parts that the target does not name.
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

// streamSettings lists the directives of TCP and UDP servers that another setting replaces.
var streamSettings = []struct{ names, reason string }{
	{"allow deny", "an entry opens its port for all clients: restrict them with a NetworkPolicy"},
	{"ssl_preread", "to choose a Service by the TLS server name, use the annotation ssl-passthrough of an Ingress"},
	{"ssl_certificate ssl_certificate_key ssl_password_file ssl_protocols ssl_ciphers ssl_prefer_server_ciphers " +
		"ssl_handshake_timeout", "use the annotation k8singress.io/stream-tls-secret of the Service"},
	{"ssl_verify_client ssl_client_certificate ssl_trusted_certificate ssl_verify_depth ssl_crl",
		"an entry opens its port for clients without a certificate, too: verify certificates in the endpoints"},
	{"proxy_ssl proxy_ssl_verify proxy_ssl_trusted_certificate proxy_ssl_name proxy_ssl_server_name " +
		"proxy_ssl_certificate proxy_ssl_certificate_key proxy_ssl_verify_depth proxy_ssl_protocols",
		"use the annotations k8singress.io/stream-backend-tls* of the Service"},
	{"proxy_timeout", "use the ConfigMap key proxy-stream-timeout"},
	{"proxy_connect_timeout", "use the annotation k8singress.io/stream-connect-timeout of the Service"},
	{"proxy_next_upstream", "use the ConfigMap key proxy-stream-next-upstream"},
	{"proxy_next_upstream_timeout", "use the ConfigMap key proxy-stream-next-upstream-timeout"},
	{"proxy_next_upstream_tries", "use the ConfigMap key proxy-stream-next-upstream-tries"},
	{"proxy_responses", "use the ConfigMap key proxy-stream-responses"},
	{"limit_conn limit_conn_zone", "use the annotation k8singress.io/stream-max-connections of the Service"},
	{"access_log log_format", "use the ConfigMap keys stream-access-log-path and log-format-stream"},
	{"set_real_ip_from", "use the annotation k8singress.io/stream-trusted-proxies of the Service"},
	{"hash ip_hash least_conn least_time random",
		"endpoints are chosen by round robin, or by client with sessionAffinity: ClientIP of the Service"},
}

// streamReasons returns the reasons of streamSettings by the names of the directives.
var streamReasons = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for _, s := range streamSettings {
		for name := range strings.FieldsSeq(s.names) {
			all[name] = s.reason
		}
	}
	return all
})

// leftOut adds the finding for a directive that is part of no entry.
func (r *streamReader) leftOut(d *Directive) {
	switch row := byName()[d.Name]; {
	case len(r.findings) > maxErrors:
	case row == nil:
		r.findings = append(r.findings, Finding{Place: Place{Shared: r.shared, Line: d.Line}, Directive: d.Name,
			Class: Unreadable, Text: noDirective(d.Name, "").Error()})
	case row.Class == Unreadable:
		r.add(d, row.Doc)
	default:
		r.add(d, cmp.Or(streamReasons()[d.Name], "no setting of TCP and UDP ports replaces it"))
	}
}

// The function named returns the directives with the given name.
func named(all []Directive, name string) []Directive {
	return slices.DeleteFunc(slices.Clone(all), func(d Directive) bool { return d.Name != name })
}
