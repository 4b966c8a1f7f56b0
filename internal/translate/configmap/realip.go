package configmap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// realIP applies the directives of nginx's module realip in http-snippet and server-snippet. As in nginx, a directive
// in server-snippet replaces the same directive in http-snippet. If a directive contradicts a key, the setting that
// trusts fewer proxies applies.
type realIP struct {
	*reading
	clients       *ir.Clients
	http, servers realIPText
}

// realIPText holds the directives in the value of a key.
type realIPText struct {
	*snippets.RealIP
	key string
}

// readRealIP applies the directives to the settings of the process.
func (r *reading) readRealIP() {
	http, servers := r.Settings.Defaults.RealIP()
	p := &realIP{
		reading: r, clients: &r.Settings.Global.Clients,
		http: realIPText{http, httpSnippet.Name}, servers: realIPText{servers, annotations.ServersSnippet.Name},
	}
	switch c := p.clients; {
	case len(http.Lines)+len(servers.Lines) == 0:
	case c.ProxyProtocol:
		p.withoutEffect("use-proxy-protocol determines the addresses of clients: write the networks of the proxies " +
			"into proxy-real-ip-cidr")
	case c.UseForwarded || c.RealIP:
		p.besideKeys()
	default:
		p.withoutKeys()
	}
}

// hasRealIP reports whether the value of a key contains directives of the module realip for servers.
func (r *reading) hasRealIP(key, value string) bool {
	s := &r.Settings.Defaults
	return key == annotations.ServersSnippet.Name && !s.IgnoreSnippets && s.HTTP.Server("", value).RealIP != nil
}

// deciding returns the text whose directive decides.
func (p *realIP) deciding(directive string) realIPText {
	if p.servers.Lines[directive] > 0 {
		return p.servers
	}
	return p.http
}

// besideKeys applies the directives if ingress-nginx writes these directives for the keys, too. They stand in front of
// http-snippet.
func (p *realIP) besideKeys() {
	const second = "it has no effect, because use-forwarded-headers or enable-real-ip configures the same, and nginx " +
		"would refuse the second directive: "
	p.warn(p.http, snippets.RealIPHeader, second+"use forwarded-for-header, or write it into server-snippet")
	p.warn(p.http, snippets.RealIPRecursive, second+"write it into server-snippet")
	c := p.clients
	switch from := p.deciding(snippets.SetRealIPFrom); {
	case from == p.servers:
		p.warn(from, snippets.SetRealIPFrom, "only the networks in server-snippet are trusted, and not "+
			"proxy-real-ip-cidr and http-snippet")
		c.Trusted = from.Networks()
	case len(c.Trusted) == 0 && len(from.Trusted) > 0:
		p.warn(from, snippets.SetRealIPFrom, "only these networks are trusted. ingress-nginx would trust all "+
			"addresses, because proxy-real-ip-cidr is not set")
		c.Trusted = from.Trusted
	default:
		c.Trusted = slices.Concat(c.Trusted, from.Trusted)
	}
	if header := p.servers.Header; header == snippets.OfPROXY {
		p.withoutPROXY(p.servers)
	} else {
		c.Header = cmp.Or(header, c.Header)
	}
	c.LastAddress = p.servers.Recursive != nil && !*p.servers.Recursive
	p.findEveryone()
}

// withoutKeys applies the directives if ingress-nginx writes none of them for the keys.
func (p *realIP) withoutKeys() {
	from, header := p.deciding(snippets.SetRealIPFrom), p.deciding(snippets.RealIPHeader)
	switch {
	case from.Lines[snippets.SetRealIPFrom] == 0:
		p.withoutEffect("no proxy is trusted: add set_real_ip_from")
		return
	case header.Header == snippets.OfPROXY:
		p.withoutPROXY(header)
		return
	}
	c := p.clients
	if len(c.Trusted) > 0 {
		p.warn(from, snippets.SetRealIPFrom, "only these networks are trusted, and not proxy-real-ip-cidr, which has "+
			"no effect without use-forwarded-headers or enable-real-ip")
	}
	recursive := p.deciding(snippets.RealIPRecursive).Recursive
	c.RealIP, c.Trusted, c.Header = true, from.Networks(), cmp.Or(header.Header, "X-Real-IP")
	c.LastAddress = recursive == nil || !*recursive
	p.findEveryone()
}

// withoutEffect adds a warning for each directive.
func (p *realIP) withoutEffect(reason string) {
	for _, text := range []realIPText{p.http, p.servers} {
		for _, directive := range []string{snippets.SetRealIPFrom, snippets.RealIPHeader, snippets.RealIPRecursive} {
			p.warn(text, directive, "it has no effect, because "+reason)
		}
	}
}

func (p *realIP) withoutPROXY(of realIPText) {
	p.warn(of, snippets.RealIPHeader, "it has no effect, because connections begin without a PROXY protocol header: "+
		"set use-proxy-protocol to true")
}

// findEveryone adds a warning if a network contains all addresses.
func (p *realIP) findEveryone() {
	from := p.deciding(snippets.SetRealIPFrom)
	if slices.ContainsFunc(from.Trusted, func(network string) bool { return strings.HasSuffix(network, "/0") }) {
		p.warn(from, snippets.SetRealIPFrom, "every client is trusted, and can choose its address: write the networks "+
			"of the proxies in front of the controller")
	}
}

// warn adds a warning for a directive. It does nothing if the text does not contain the directive.
func (p *realIP) warn(of realIPText, directive, message string) {
	if line := of.Lines[directive]; line > 0 {
		p.Warn(report.InvalidEntry, "data["+of.key+"]", fmt.Sprintf("line %d: %s: %s", line, directive, message))
	}
}
