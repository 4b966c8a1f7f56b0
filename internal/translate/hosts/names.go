package hosts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

// Name is an alias that the owner of a host requests for the host.
type Name struct {
	// Name is the alias, in the format of ir.VirtualHost.Host, or "~" followed by a regular expression.
	Name string
	// Of is the host that the alias belongs to. Status is the status code of a redirect from the alias to the host. If
	// it is zero, requests for the alias are served like requests for the host. By is the object that requests the
	// alias.
	Of     string
	Status int
	By     kinds.Object
	// Chains is the filter that runs the default chains of By before a redirect, or nil.
	Chains []ir.Filter
}

func (n *Name) field() string {
	if n.Status != 0 {
		return report.AnnotationField(report.FromToWWW)
	}
	return report.AnnotationField(report.ServerAlias)
}

// names collects the aliases of the host. Only objects in the namespace that owns the host can request aliases. The
// oldest of these objects with the annotation server-alias determines the aliases. The others get a warning if their
// aliases differ.
func (m *mergeState) names() {
	var aliases, www *Contribution
	for r := range m.ofOwner(true) {
		switch {
		case len(r.Aliases) == 0:
		case aliases == nil:
			aliases = r
		case !slices.Equal(aliases.Aliases, r.Aliases):
			m.withoutName(r, report.ServerAlias, fmt.Sprintf(
				"the setting has no effect on %s: %s has different aliases, which are used "+
					"instead", OrEvery(m.Host.Host),
				snapshot.Elder(aliases.Object, r.Object)))
		}
		if r.WWW != 0 && www == nil {
			www = r
		}
	}
	for r := range m.ofOwner(false) {
		why := "the setting has no effect on " + OrEvery(m.Host.Host) + ": " + m.ownerFor(r) + " in another " +
			"namespace owns this host"
		if len(r.Aliases) > 0 && m.serves(r) {
			m.withoutName(r, report.ServerAlias, why)
		}
		if r.WWW != 0 && m.serves(r) {
			m.withoutName(r, report.FromToWWW, why)
		}
	}
	m.aliases(aliases)
	m.www(www)
}

func (m *mergeState) aliases(r *Contribution) {
	host := m.Host.Host
	switch {
	case r == nil:
		return
	case host == "":
		m.withoutName(r, report.ServerAlias,
			"the setting has no effect on the rule without a host, which matches every name anyway")
		return
	}
	for _, alias := range r.Aliases {
		if alias == host {
			continue
		}
		if strings.HasPrefix(alias, "*.") {
			// As in nginx's server_name, a wildcard alias matches any number of labels, so "*.example.com" becomes
			// "**.example.com".
			alias = "*" + alias
		}
		m.Names = append(m.Names, Name{Name: alias, Of: host, By: r.Object})
	}
}

func (m *mergeState) www(r *Contribution) {
	host := m.Host.Host
	switch {
	case r == nil:
		return
	case host == "" || strings.HasPrefix(host, "*."):
		m.withoutName(r, report.FromToWWW,
			"the setting has no effect on "+OrEvery(host)+": only a complete host name can have such a redirect")
		return
	}
	other, ok := strings.CutPrefix(host, "www.")
	if !ok {
		other = "www." + host
	}
	m.Names = append(m.Names, Name{Name: other, Of: host, Status: r.WWW, By: r.Object,
		Chains: r.DefaultChains})
}

func (m *mergeState) withoutName(r *Contribution, annotation, message string) {
	m.problem(r, report.Problem{
		Severity: report.Warning, Reason: report.HostConflict, Field: report.AnnotationField(annotation),
		Message: message,
	})
}

// Naming decides which host gets an alias.
type Naming struct {
	Policy ownership.Policy
	// NoCatchAll rejects aliases that can match hosts of any owner. It is set by the option disable_catch_all, which
	// also rejects rules without a host.
	NoCatchAll bool
	// Merged returns the result of Merge for a host, or nil if the host does not exist.
	Merged func(host string) *Merged
}

// Named is the result of Resolve for one alias: which host gets the alias, and the problems with the alias.
type Named struct {
	// Host is the virtual host for the alias. It is nil if the alias is not served.
	Host *ir.VirtualHost
	// Certificate is the certificate for the alias, copied from its host, or nil.
	Certificate *ir.Certificate
	// Namespace is the namespace that gets requests for the alias. It is empty if the alias is not served.
	Namespace string
	// Wanted are the hosts for which the alias is requested.
	Wanted []string
	// Problems maps objects to their problems with this alias. It is nil if there are no problems.
	Problems map[ir.Ref][]report.Problem
}

// Resolve decides which of the hosts in wants gets name as an alias. If an Ingress has a rule for name, name does not
// become an alias. An alias does not make a namespace the owner of the name. So an alias is also rejected if another
// namespace gets the requests for the name, for example because it owns a wildcard that covers the name.
func (s *Naming) Resolve(name string, wants []Name) *Named {
	slices.SortFunc(wants, func(a, b Name) int {
		return cmp.Or(snapshot.Older(a.By, b.By), cmp.Compare(b.Status, a.Status), cmp.Compare(a.Of, b.Of))
	})
	n, by := &Named{}, Name{}
	for _, w := range wants {
		n.Wanted = append(n.Wanted, w.Of)
		switch p := s.refusal(&w); {
		case p != nil:
			n.addProblem(&w, *p)
		case by.By != nil:
			n.addProblem(&w, report.Problem{Severity: report.Warning,
				Message: fmt.Sprintf("%s is already a name of the host %s, because of %s, so it does not become a "+
					"name of the host %s",
					displayName(name), by.Of,
					snapshot.RefOf(by.By), w.Of)})
		default:
			if n.give(&w, s.Merged(w.Of)) {
				by = w
			}
		}
	}
	return n
}

func (n *Named) addProblem(w *Name, p report.Problem) {
	p.Reason, p.Field = cmp.Or(p.Reason, report.HostConflict), w.field()
	if n.Problems == nil {
		n.Problems = map[ir.Ref][]report.Problem{}
	}
	of := snapshot.RefOf(w.By)
	n.Problems[of] = append(n.Problems[of], p)
}

// The method give assigns the alias w to a host. The parameter to is the result of Merge for this host. If the alias is
// a redirect and the host has no routes, give does nothing and returns false, because the redirect would lead nowhere.
func (n *Named) give(w *Name, to *Merged) bool {
	if w.Status != 0 && len(to.Host.Routes) == 0 {
		return false
	}
	n.Namespace = w.By.GetNamespace()
	if c := to.Certificate; c != nil && !c.Automated && w.Name[0] != '~' {
		same := *c
		same.Host = CertificateHost(w.Name)
		n.Certificate = &same
	}
	n.Host = &ir.VirtualHost{Host: w.Name, AliasOf: w.Of}
	if w.Name[0] == '~' {
		n.Host.AliasBy = snapshot.RefOf(w.By)
		if created := w.By.GetCreationTimestamp(); !created.IsZero() {
			n.Host.AliasSince = created.Unix()
		}
	}
	if w.Status == 0 {
		return true
	}
	n.Host = &ir.VirtualHost{Host: w.Name, TLS: to.Host.TLS, TLSOrigin: to.Host.TLSOrigin, Routes: []*ir.Route{{
		Match:    ir.Match{PathMatch: ir.PathMatch{Type: ir.MatchPrefix, Path: "/"}},
		Filters:  append(slices.Clip(w.Chains), ir.HostRedirect{Status: w.Status, Host: w.Of}),
		Backends: ir.To(to.Host.Routes[0].Backends[0].Backend),
		Origin:   snapshot.RefOf(w.By),
	}}}
	return true
}

// CertificateHost returns the host name that the certificate of an alias must contain. It turns "**.example.com" into
// "*.example.com", because a wildcard in a certificate matches exactly one label.
func CertificateHost(name string) string {
	if strings.HasPrefix(name, "**.") {
		return name[1:]
	}
	return name
}

// displayName returns an alias as it is written in the Ingress.
func displayName(name string) string { return CertificateHost(name) }

// refusal returns the reason why the alias w is rejected, or nil if it is allowed.
func (s *Naming) refusal(w *Name) *report.Problem {
	host, namespace := CertificateHost(w.Name), w.By.GetNamespace()
	if p := s.tooWide(w.Name); p != nil {
		return p
	}
	if own := s.Merged(host); own != nil && own.Owner.By != nil {
		return &report.Problem{Severity: report.Warning,
			Message: fmt.Sprintf("the setting has no effect on the host %s, because a rule of %s names this host", host,
				snapshot.RefOf(own.Owner.By))}
	}
	for _, around := range s.others(w.Name) {
		if m := s.Merged(around); m != nil && m.Owner.By != nil && m.Owner.Namespace != namespace {
			return &report.Problem{Severity: report.Error,
				Message: fmt.Sprintf(
					"%s is not served, because %s in another namespace owns %s: use another name, or add a rule for it",
					host, snapshot.RefOf(m.Owner.By), OrEvery(around))}
		}
	}
	if other := s.reservedFor(w.Name, namespace); other != "" {
		return &report.Problem{Severity: report.Error,
			Message: fmt.Sprintf(
				"%s is not served, because the option host_owner reserves %s for other namespaces: use another name",
				host, other)}
	}
	return nil
}

// tooWide returns a problem if an alias can match hosts of any owner and the administrator does not allow such aliases.
// Otherwise it returns nil.
func (s *Naming) tooWide(name string) *report.Problem {
	if !s.NoCatchAll && !s.Policy.Exclusive || !isWide(name) {
		return nil
	}
	option := "disable_catch_all"
	if !s.NoCatchAll {
		option = "host_ownership namespace"
	}
	return &report.Problem{Severity: report.Error, Reason: report.CatchAllRefused,
		Message: fmt.Sprintf(
			"%s is not served, because it could match hosts of any owner, which the option %s forbids: list the "+
				"names, or use a wildcard below your own domain", displayName(name), option)}
}

// isWide reports whether an alias can match names of many owners, because it is a regular expression, or a wildcard
// directly below a public suffix, such as *.com or *.co.uk.
func isWide(name string) bool {
	if name[0] == '~' {
		return true
	}
	domain, ok := strings.CutPrefix(name, "**.")
	if !ok {
		return false
	}
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain
}

// The method others returns the hosts that get the requests for a name if the name is not an alias: the wildcard that
// covers it, or "" for a regular expression.
func (s *Naming) others(name string) []string {
	if name[0] == '~' {
		return []string{""}
	}
	if above := WildcardOf(name); above != "" {
		return []string{above}
	}
	return nil
}

// reservedFor returns the hosts that an alias matches and that are reserved for other namespaces, formatted for a
// message. It returns "" if there are no such hosts. A regular expression is assumed to match every reserved host.
func (s *Naming) reservedFor(name, namespace string) string {
	if name[0] != '~' && !s.Policy.Admits(CertificateHost(name), namespace) {
		return displayName(name)
	}
	wildcard, deep := strings.CutPrefix(name, "**")
	if !deep && name[0] != '~' {
		return ""
	}
	var kept []string
	for host := range s.Policy.Reserved {
		if (name[0] == '~' || strings.HasSuffix(host, wildcard)) && !s.Policy.Admits(host, namespace) {
			kept = append(kept, host)
		}
	}
	slices.Sort(kept)
	return report.List(kept, len(kept), report.MaxListed)
}
