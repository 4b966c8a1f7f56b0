package snippets

import (
	"fmt"
	"strings"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// RealIP holds the directives of nginx's module realip. They determine the addresses of the clients of all hosts.
type RealIP struct {
	// Trusted are the networks of the proxies in set_real_ip_from that can be used. It may be empty.
	Trusted []string
	// Header is the name of the header field in real_ip_header, or "proxy_protocol". It is empty if the text does not
	// contain the directive. Recursive is the value of real_ip_recursive, or nil if there is no such directive.
	Header    string
	Recursive *bool
	// Lines maps the names of the directives in the text to the line of the first one.
	Lines map[string]int
}

// The directives of the module realip.
const (
	SetRealIPFrom   = "set_real_ip_from"
	RealIPHeader    = "real_ip_header"
	RealIPRecursive = "real_ip_recursive"
)

// OfPROXY is the value of RealIP.Header for the address in the PROXY protocol header of a connection.
const OfPROXY = "proxy_protocol"

// Networks returns the networks of the trusted proxies for ir.Clients. It contains only nginx.Nowhere if the text has
// set_real_ip_from without a network that can be used.
func (p *RealIP) Networks() []string {
	if len(p.Trusted) == 0 {
		return []string{nginx.Nowhere}
	}
	return p.Trusted
}

// readRealIP interprets the directives of the module realip. Only texts of the ConfigMap for all hosts may contain
// them: guards of all namespaces, limits and logs use the address of a client. If they were ignored, an address list
// would compare the address of the proxy, which may let clients in as well as keep them out.
func (r *reader) readRealIP(d *Directive) error {
	ofServers := r.shared && r.server != nil && r.server.listens == nil && r.scope.context == inServer
	if !ofServers && r.scope.context != inHTTP {
		return &problem{Guard, "changes the addresses of clients, on which the guards of all namespaces depend: " +
			"write it into the ConfigMap key http-snippet"}
	}
	if r.realIP == nil {
		r.realIP = &RealIP{Lines: map[string]int{}}
	}
	if r.realIP.Lines[d.Name] == 0 {
		r.realIP.Lines[d.Name] = d.Line
	}
	switch d.Name {
	case SetRealIPFrom:
		return r.realIP.trust(d.Args[0])
	case RealIPRecursive:
		recursive := isOn(d)
		r.realIP.Recursive = &recursive
		return nil
	}
	name, err := nginx.Token(d.Args[0])
	r.realIP.Header = name
	return err
}

// trust adds the argument of set_real_ip_from.
func (p *RealIP) trust(proxy string) error {
	networks, err := nginx.AllNetworks(proxy)
	switch {
	case proxy == "unix:":
		return noEffect("clients that use a Unix socket have no address")
	case err == nil && len(networks) == 1:
		p.Trusted = append(p.Trusted, networks...)
		return nil
	case isHostName(proxy):
		return leftOut(fmt.Sprintf("the name %s is not resolved, so this proxy is not trusted: write the networks of "+
			"the proxies", nginx.Quote(proxy)))
	}
	return fmt.Errorf("%s is not a network, such as 10.0.0.0/8", nginx.Quote(proxy))
}

// isHostName reports whether a text that is not an address may be the name of a host.
func isHostName(text string) bool {
	labels := strings.Split(strings.ToLower(text), ".")
	for _, label := range labels {
		if !isLabel(label) {
			return false
		}
	}
	return strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
