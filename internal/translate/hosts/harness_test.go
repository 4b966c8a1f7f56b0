package hosts_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// setting configures a Contribution.
type setting func(*hosts.Contribution)

// ingress returns the Contribution of an Ingress, which has the name "namespace/name" and was created in this second of
// 1970. In second 0, it has no creation time.
func ingress(name string, second int64, settings ...setting) *hosts.Contribution {
	namespace, name, _ := strings.Cut(name, "/")
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if second != 0 {
		o.CreationTimestamp = metav1.NewTime(time.Unix(second, 0))
	}
	c := &hosts.Contribution{
		Object: o, Paths: map[string][]*hosts.Path{}, Certificates: map[string]*ir.Certificate{},
	}
	for _, set := range settings {
		set(c)
	}
	return c
}

// rule adds a rule for a host. A path is "PATH SERVICE", and has the type Prefix. If it starts with "=", it has the
// type Exact, and if it starts with "~", it is a regular expression. "default SERVICE" is the default backend of an
// Ingress with rules.
func rule(host string, paths ...string) setting {
	return func(c *hosts.Contribution) {
		c.Paths[host] = nil
		for i, text := range paths {
			p := pathOf(c, text)
			if !p.Last {
				p.Field = fmt.Sprintf("spec.rules[0].http.paths[%d]", i)
			}
			c.Paths[host] = append(c.Paths[host], p)
		}
	}
}

// fallback removes the rules, and sets a default backend for all hosts.
func fallback(service string) setting {
	return func(c *hosts.Contribution) { c.Paths, c.Fallback = nil, pathOf(c, "default "+service) }
}

func pathOf(c *hosts.Contribution, text string) *hosts.Path {
	path, service, _ := strings.Cut(text, " ")
	p := &hosts.Path{
		Match:   ir.PathMatch{Type: ir.MatchPrefix, Path: path},
		Backend: &ir.Backend{ID: c.Object.GetNamespace() + "/" + service + "/80"},
	}
	switch {
	case path == "default":
		p.Match.Path, p.Last, p.Field = "/", true, "spec.defaultBackend"
	case path[0] == '=':
		p.Match = ir.PathMatch{Type: ir.MatchExact, Path: path[1:]}
	case path[0] == '~':
		p.Match.Path, p.Regex = path[1:], true
	}
	return p
}

// each changes all paths of the rules that were added before.
func each(change func(*hosts.Path)) setting {
	return func(c *hosts.Contribution) {
		for _, paths := range c.Paths {
			for _, p := range paths {
				change(p)
			}
		}
	}
}

// guarded adds a filter that may reject requests to all paths of the rules that were added before.
func guarded(c *hosts.Contribution) {
	each(func(p *hosts.Path) { p.Filters = []ir.Filter{ir.SourceRanges{Deny: []string{"192.0.2.0/24"}}} })(c)
}

// redirecting redirects requests to HTTPS with this status, as ssl-redirect does for the paths that were added before.
func redirecting(status int) setting {
	return func(c *hosts.Contribution) {
		c.Redirect = &ir.HTTPSRedirect{Status: status}
		each(func(p *hosts.Path) { p.Redirect = c.Redirect })(c)
	}
}

// always makes the redirect of redirecting apply to hosts without TLS, too, as force-ssl-redirect does.
func always(c *hosts.Contribution) {
	c.RedirectAlways = true
	each(func(p *hosts.Path) { p.RedirectAlways = true })(c)
}

// listed adds an entry of spec.tls with one host. If secret is empty, an issuer provides the certificate.
func listed(host, secret string) setting {
	return func(c *hosts.Contribution) {
		c.TLSHosts = append(c.TLSHosts, host)
		c.Certificates[host] = &ir.Certificate{Host: host, Automated: secret == "", Origin: c.Ref()}
		if secret != "" {
			c.Certificates[host].Secret = ir.Name{Namespace: c.Object.GetNamespace(), Name: secret}
		}
	}
}

// absent means that the Secret for the host does not exist.
func absent(host string) setting {
	return func(c *hosts.Contribution) { c.Absent = append(c.Absent, host) }
}

// implied requests a certificate from an issuer for s.example, which is not in spec.tls. If refusal is not empty, it is
// the reason why no issuer can issue it.
func implied(refusal string) setting {
	return func(c *hosts.Contribution) {
		const host = "s.example"
		i := &hosts.Implied{Certificate: &ir.Certificate{Host: host, Automated: true, Origin: c.Ref()}}
		if refusal != "" {
			i.Refusal = &report.Problem{Message: refusal}
		}
		c.Implied = map[string]*hosts.Implied{host: i}
	}
}

// mutual requires client certificates of the authorities in a Secret.
func mutual(secret string) setting {
	return func(c *hosts.Contribution) {
		c.ClientAuth = &ir.ClientAuth{Secret: ir.Name{Namespace: "ca", Name: secret}, Origin: c.Ref()}
	}
}

// ciphers sets the cipher suites of the hosts.
func ciphers(names ...string) setting {
	return func(c *hosts.Contribution) { c.TLS.Ciphers, c.AsksCiphers = names, true }
}

// rooted redirects "/" to a path of the same host.
func rooted(path string) setting {
	return func(c *hosts.Contribution) {
		c.Root = &hosts.Path{Filters: []ir.Filter{ir.AppRoot{Path: path}}}
	}
}

func aliased(names ...string) setting { return func(c *hosts.Contribution) { c.Aliases = names } }

func passing(c *hosts.Contribution) { c.PassesThrough = true }

// mergeCase is one call of Merge. serves and problems are the expected results, as served and problemsOf print them.
type mergeCase struct {
	of               []*hosts.Contribution
	around           hosts.HostContext
	serves, problems []string
}

// mergeCases calls Merge for the host, with the objects in two orders.
func mergeCases(t *testing.T, host string, cases map[string]mergeCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				m := merged(host, &c.around, c.of...)
				if diff := gocmp.Diff(c.serves, served(m)); diff != "" {
					t.Errorf("is served (-want +got):\n%s", diff)
				}
				slices.Sort(c.problems)
				if diff := gocmp.Diff(c.problems, problemsOf(m.Problems)); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				slices.Reverse(c.of)
			}
		})
	}
}

// merged calls Merge as the translation does: with the objects that have rules or certificates, and with the objects
// that only have a default backend.
func merged(host string, around *hosts.HostContext, of ...*hosts.Contribution) *hosts.Merged {
	var results, fallbacks []*hosts.Contribution
	for _, c := range of {
		if c.Fallback != nil {
			fallbacks = append(fallbacks, c)
		} else {
			results = append(results, c)
		}
	}
	return hosts.Merge(host, results, fallbacks, around)
}

// served describes a merged host as its clients see it: one line for each route, in order, then one line for each
// setting of the whole host.
func served(m *hosts.Merged) (lines []string) {
	line := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if m.Host == nil {
		line("not served")
	} else {
		for _, r := range m.Host.Routes {
			line("%s %s%s -> %s", r.Match.Type, r.Match.Path, conditions(r.Match.Conditions), destination(r))
		}
		lines = append(lines, ofHost(m.Host)...)
	}
	if c := m.Certificate; c != nil {
		line("certificate %s", certificate(c, m.Absent))
	}
	for namespace, c := range m.Others {
		line("certificate of hosts of %s: %s", namespace, certificate(c, false))
	}
	if i := m.Implied; i != nil && i.Refusal != nil {
		line("no issuer: %s", i.Refusal.Message)
	} else if i != nil {
		line("implied certificate %s", certificate(i.Certificate, false))
	}
	for _, n := range m.Names {
		line("name %s of %s, status %d, by %s", n.Name, n.Of, n.Status, n.By.GetName())
	}
	for b, mains := range m.Mains {
		line("canary %s of %v -> %s", b.Canary, mains, b.Backend)
	}
	return lines
}

func ofHost(h *ir.VirtualHost) (lines []string) {
	if h.HTTPSRedirect != nil {
		lines = append(lines, "other paths -> "+filter(*h.HTTPSRedirect))
	}
	if h.TLS != nil && len(h.TLS.Ciphers) > 0 {
		lines = append(lines, "ciphers "+strings.Join(h.TLS.Ciphers, " ")+" of "+h.TLSOrigin)
	}
	switch {
	case h.ClientAuth == nil:
	case h.ClientAuth.Closed:
		lines = append(lines, "client certificates "+h.ClientAuth.Secret.String()+", closed")
	default:
		lines = append(lines, "client certificates "+h.ClientAuth.Secret.String())
	}
	if h.Passthrough != nil {
		lines = append(lines, "TLS -> "+h.Passthrough.Backends[0].Backend.ID)
	}
	return lines
}

func certificate(c *ir.Certificate, missing bool) string {
	switch {
	case c.Automated:
		return "from an issuer, for " + c.Host
	case missing:
		return c.Secret.String() + " is missing"
	}
	return c.Secret.String() + " for " + c.Host
}

// conditions describes the conditions that a request must match besides the path.
func conditions(c *ir.Conditions) string {
	if c == nil {
		return ""
	}
	var all []string
	if c.Session {
		all = append(all, "session")
	}
	for _, h := range c.Headers {
		all = append(all, fmt.Sprintf("header %s=%s (regex %t)", h.Name, h.Value, h.Regex))
	}
	for _, k := range c.Cookies {
		all = append(all, fmt.Sprintf("cookie %s=%s", k.Name, k.Value))
	}
	return " if " + strings.Join(all, ", ")
}

// destination describes what becomes of a request: what the filters do, and then the backends with their weights.
func destination(r *ir.Route) string {
	var all []string
	for _, f := range r.Filters {
		all = append(all, filter(f))
		if _, ok := f.(ir.DirectResponse); ok {
			return strings.Join(all, ", ")
		}
	}
	for _, b := range r.Backends {
		text := b.Backend.ID
		if len(r.Backends) > 1 {
			text += fmt.Sprintf(" weight %d", b.Weight)
		}
		if b.Fallback {
			text += " and fallback"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func filter(f ir.Filter) string {
	switch f := f.(type) {
	case ir.DirectResponse:
		return fmt.Sprint(f.Status)
	case ir.HTTPSRedirect:
		return fmt.Sprintf("%d to HTTPS", f.Status)
	case ir.AppRoot:
		return "302 to " + f.Path
	case ir.HostRedirect:
		return fmt.Sprintf("%d to %s", f.Status, f.Host)
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", f), "ir.")
}

// problemsOf prints the problems, one line each, sorted.
func problemsOf(problems map[ir.Ref][]report.Problem) (lines []string) {
	for ref, all := range problems {
		for _, p := range all {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", p.Severity, p.Reason, ref, cmp.Or(p.Field, "-"),
				p.Message))
		}
	}
	slices.Sort(lines)
	return lines
}

// sharing returns the problems of Ingress/a/old, which is the owner of s.example, and of a younger Ingress in another
// namespace. guest is the younger Ingress, in the form of ir.Ref.String.
func sharing(guest string) []string {
	return []string{
		"warning HostConflict Ingress/a/old spec.rules: this namespace owns the host s.example, and another " +
			"namespace defines paths of it, too: " + guest + ". To keep a host in one namespace, use the option " +
			"host_ownership or host_owner",
		"info HostConflict " + guest + " spec.rules: the older Ingress/a/old in another namespace owns the host " +
			"s.example: the paths of this Ingress are served on the host, but that namespace decides about settings " +
			"of the whole host",
	}
}

// rejecting returns the problems of Ingress/a/old, which is the owner of s.example, and of the younger Ingress/b/young,
// which the option "host_ownership namespace" rejects.
func rejecting() []string {
	return []string{
		"info HostConflict Ingress/a/old spec.rules: this namespace owns the host s.example, and another namespace " +
			"that names it is rejected: Ingress/b/young",
		"error HostConflict Ingress/b/young spec.rules: the older Ingress/a/old in another namespace owns the host " +
			"s.example: this Ingress is not served on the host, because of the option \"host_ownership " +
			"namespace\". Use another host",
	}
}
