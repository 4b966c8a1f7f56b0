package snippets

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/nginx"
)

// HTTPServer is a server in the text for all hosts. It has ports of its own, and responds without endpoints.
type HTTPServer struct {
	// Line is the line of the directive.
	Line    int
	Listens []Listen
	// Names are the names of server_name. "" is not a name of a client's request, so a server with only this name
	// responds if no other server of its port has the requested name.
	Names []string
	// Program runs before a location is searched. It is nil if there are no steps.
	Program *ir.Program
	// Locations contain what they inherit from the server. One of them is "/".
	Locations []ServerLocation
}

// Listen is a port of a server.
type Listen struct {
	Port uint16
	// TLS is true if clients must use TLS. Default is true if the server responds to all names of the port that no
	// other server has.
	TLS, Default bool
}

// listeningReader is a server whose block is read when the variables of the text are known.
type listeningReader struct {
	directive *Directive
	// finding is the index of the finding for the directive.
	finding int
}

// maxServers is the maximum number of servers in a text.
const maxServers = 20

// listeningServer interprets the directive server.
func (r *reader) listeningServer(d *Directive) error {
	if port := portOfIngresses(d.Block); port != 0 {
		return &problem{Guard, fmt.Sprintf("could respond in place of Ingresses, because it listens on port %d, which "+
			"is for Ingresses: write listen with another port, such as 2443, or write an Ingress for its hosts", port)}
	}
	if len(r.listening) == maxServers {
		return leftOut(fmt.Sprintf("there are more than %d servers: remove some of them", maxServers))
	}
	r.listening = append(r.listening, listeningReader{d, len(r.out.Findings) - 1})
	return nil
}

// defaultPort is the port of listen without a port.
const defaultPort = 80

// portsOfIngresses are the ports on which ingress-nginx serves Ingresses. reservedPorts are other ports on which
// ingress-nginx itself listens.
var (
	portsOfIngresses = []uint16{80, 443, 442, 8080, 8443}
	reservedPorts    = []uint16{8181, 10245, 10246, 10247, 10254}
)

// portOfIngresses returns the first port of a server on which ingress-nginx serves Ingresses, or 0. Without listen,
// nginx opens port 80.
func portOfIngresses(block []Directive) uint16 {
	listens := named(block, "listen")
	if len(listens) == 0 {
		return defaultPort
	}
	for i := range listens {
		port := uint16(defaultPort)
		if args := listens[i].Args; len(args) > 0 {
			_, port = splitAddress(args[0])
		}
		if slices.Contains(portsOfIngresses, port) {
			return port
		}
	}
	return 0
}

// splitAddress returns the host and the port in the first argument of the directive listen. The host is empty if there
// is only a port, and the port is defaultPort if there is only a host. The port of a Unix socket is 0, as an invalid
// port.
func splitAddress(address string) (host string, port uint16) {
	if strings.HasPrefix(address, "unix:") {
		return address, 0
	}
	host, number, err := net.SplitHostPort(address)
	switch {
	case err == nil:
	case strings.Trim(address, "0123456789") == "":
		number = address
	default:
		return address, defaultPort
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return host, 0
	}
	return host, uint16(n)
}

// readListening reads the blocks of all servers, and sets the servers of h.
func (r *reader) readListening(h *HTTP) {
	for _, of := range r.listening {
		r.define(of.directive.Block)
	}
	for _, of := range r.listening {
		s := &HTTPServer{Line: of.directive.Line}
		block := r.readServerBlock(s, of.directive.Block)
		if reason := s.refusal(block); reason != "" {
			f := &r.out.Findings[of.finding]
			f.Class, f.Text = LeftOut, sentence(quote(f.Directive), LeftOut, reason)
			openGuards(block)
		} else if !unreadable(block) {
			h.Servers = append(h.Servers, *s)
		}
		r.out.Findings = append(r.out.Findings, block...)
	}
}

// readServerBlock sets the fields of s. The findings do not close Ingresses, unless the whole text is unreadable.
func (r *reader) readServerBlock(s *HTTPServer, block []Directive) []Finding {
	top := &scope{context: inServer}
	of := &reader{out: &Result{}, common: r.common, shared: true, server: &serverReader{listens: s}, top: top,
		scope: top}
	of.level(block, top)
	findings := of.out.Findings
	for i := range findings {
		findings[i].InLocation = true
	}
	if !slices.ContainsFunc(of.server.locations, func(l *locationReader) bool {
		return l.Match == ir.PathMatch{Type: ir.LocationPrefix, Path: "/"} ||
			l.Match == ir.PathMatch{Type: ir.LocationPrefixOnly, Path: "/"}
	}) {
		l := of.newLocation(Place{Shared: true, Line: s.Line}, ir.PathMatch{Type: ir.LocationPrefix, Path: "/"})
		l.Status = of.status
		of.server.locations = append(of.server.locations, l)
	}
	of.inherit(r)
	whole := &ServerResult{Result: *of.finish()}
	s.Locations = of.server.finish()
	if whole.hideFromPaths(); len(top.steps) > 0 {
		// The locations inherit the lists of allow and deny. nginx runs these steps before it checks them.
		s.Program = whole.Program
	}
	return findings
}

// openGuards turns the guards of a server without a port into warnings, since there are no requests to reject.
func openGuards(block []Finding) {
	for i := range block {
		if block[i].Class == Guard {
			block[i].Class = LeftOut
		}
	}
}

// refusal returns why no port is opened for the server, or "".
func (s *HTTPServer) refusal(block []Finding) string {
	for i := range block {
		f := &block[i]
		required := slices.Contains([]string{"listen", "server_name", "proxy_pass"}, f.Directive)
		if f.Class == Guard || f.Class == LeftOut && required {
			return fmt.Sprintf("no port is opened for it, because of %s in line %d: serve its content with an Ingress "+
				"or with a server of the Caddyfile", quote(f.Directive), f.Line)
		}
	}
	responds := stepsRespond(s.Program)
	for i := range s.Locations {
		l := &s.Locations[i]
		responds = responds || l.Status || stepsRespond(l.Content.Program)
	}
	if !responds {
		return "no port is opened for it, because it has neither return nor stub_status: serve its content with an " +
			"Ingress or with a server of the Caddyfile"
	}
	return ""
}

// stepsRespond reports whether the steps of a program may respond. p may be nil.
func stepsRespond(p *ir.Program) bool {
	return p != nil && ir.Program{Steps: p.Steps}.Guards() != ir.NoRequests
}

// listen interprets listen.
func (r *reader) listen(d *Directive) error {
	if r.server == nil || r.server.listens == nil {
		return leftOut("the Caddyfile, annotations and keys of the ConfigMap configure listeners and TLS")
	}
	host, port := splitAddress(d.Args[0])
	switch {
	case port == 0:
		return leftOut("the address is not supported: write only a port from 1 to 65535")
	case !slices.Contains([]string{"", "*", "0.0.0.0", "::"}, host):
		return leftOut("a port is opened on the addresses of the HTTP servers: write only the port, and restrict its " +
			"clients with allow and deny")
	case slices.Contains(reservedPorts, port):
		return leftOut("ingress-nginx itself listens on this port: write another port")
	}
	listen := Listen{Port: port}
	for _, parameter := range d.Args[1:] {
		if err := listen.set(parameter); err != nil {
			return err
		}
	}
	all := &r.server.listens.Listens
	// A server that listens on IPv4 and IPv6 has two lines with the same port.
	if i := slices.IndexFunc(*all, func(l Listen) bool { return l.Port == listen.Port }); i >= 0 {
		(*all)[i].TLS = (*all)[i].TLS || listen.TLS
		(*all)[i].Default = (*all)[i].Default || listen.Default
		return nil
	}
	*all = append(*all, listen)
	return nil
}

// socketOptions are parameters of listen that only affect how nginx uses its socket.
var socketOptions = []string{"http2", "backlog", "reuseport", "ipv6only", "deferred", "so_keepalive", "rcvbuf",
	"sndbuf", "fastopen", "bind"}

// set applies a parameter of the directive listen.
func (l *Listen) set(parameter string) error {
	name, _, _ := strings.Cut(parameter, "=")
	switch {
	case name == "ssl":
		l.TLS = true
	case name == "default_server", name == "default":
		l.Default = true
	case name == "proxy_protocol":
		return leftOut("the key use-proxy-protocol of the ConfigMap decides whether the ports of HTTP accept PROXY " +
			"protocol headers: remove proxy_protocol")
	case !slices.Contains(socketOptions, name):
		return leftOut(fmt.Sprintf("the parameter %s is not supported: remove it", nginx.Quote(parameter)))
	}
	return nil
}

// serverName interprets server_name.
func (r *reader) serverName(d *Directive) error {
	if r.server == nil || r.server.listens == nil {
		return leftOut("the hosts of the Ingress are the names of the server: write them into spec.rules, or into " +
			"the annotation server-alias")
	}
	for _, name := range d.Args {
		host := strings.TrimSuffix(strings.ToLower(name), ".")
		if strings.HasPrefix(host, "~") || strings.ContainsAny(host, "$ /") ||
			strings.Contains(strings.TrimPrefix(host, "*."), "*") {
			return leftOut(fmt.Sprintf("the name %s is not supported: write a host name or *.DOMAIN",
				nginx.Quote(name)))
		}
		names := []string{host}
		switch domain, wild := strings.CutPrefix(host, "*."); {
		case wild:
			names[0] = "**." + domain
		case strings.HasPrefix(host, "."):
			names = []string{host[1:], "**" + host}
		case host == "_":
			names[0] = ""
		}
		r.server.listens.Names = append(r.server.listens.Names, names...)
	}
	return nil
}

// stubStatus interprets stub_status.
func (r *reader) stubStatus(*Directive) error {
	switch {
	case r.server == nil || r.server.listens == nil:
		return &problem{Guard, "changes who responds: write it in a server in the ConfigMap key http-snippet"}
	case r.location != nil:
		r.location.Status = true
	default:
		r.status = true
	}
	return nil
}
