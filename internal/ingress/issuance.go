package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/hosts"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

// Issuance says which hosts get a certificate from an issuer, and what the issuers are able to do.
type Issuance struct {
	// Mode is which hosts get one where neither the Ingress nor a ConfigMap says: one of the words for auto-https.
	// AutoHTTPSOff is final.
	Mode string
	// OnMissingSecret takes a Secret that does not exist for none.
	OnMissingSecret bool
	// Except are the namespaces that get none, whatever their Ingresses say.
	Except []string
	// AnyName says that an issuer takes names that are not public, Wildcards that one takes wildcards.
	AnyName, Wildcards bool
}

// mode says which hosts of the Ingress get a certificate from an issuer.
func (r *reading) mode() string {
	o := &r.options.Issuance
	switch {
	case r.manager() != "":
		return annotations.AutoHTTPSOff
	case o.Mode == annotations.AutoHTTPSOff:
		r.overruled("the option auto_https off")
		return annotations.AutoHTTPSOff
	case slices.Contains(o.Except, r.Object.Namespace):
		r.overruled("the option auto_https_except")
		return annotations.AutoHTTPSOff
	}
	return cmp.Or(r.annotations.AutoHTTPS, o.Mode, annotations.AutoHTTPSListed)
}

// overruled tells an Ingress that asks for certificates that the administrator does not let it.
func (r *reading) overruled(by string) {
	if r.Object.Annotations[annotations.OwnPrefix+"auto-https"] != "" && r.annotations.AutoHTTPS != annotations.AutoHTTPSOff {
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(annotations.AutoHTTPS.Name),
			"%s lets no Ingress here have a certificate from an issuer, and the annotation has no effect", by)
	}
}

// ask takes an issuer for the source of the certificate of a host that is listed, unless it has one.
func (r *reading) ask(host, field string) {
	if _, has := r.Certificates[host]; has {
		return
	}
	if p := r.refusal(host, field); p != nil {
		p.Severity = report.Warning
		r.certificateProblem([]string{host}, "", *p)
		return
	}
	r.Certificates[host] = r.automated(host)
}

func (r *reading) automated(host string) *ir.Certificate {
	return &ir.Certificate{Host: host, Automated: true, Origin: r.origin()}
}

// refusal says that no issuer can be asked for a host. It is nil where one can.
func (r *reading) refusal(host, field string) *report.Problem {
	reason, why := r.options.Issuance.Refuse(host)
	if why == "" {
		return nil
	}
	return &report.Problem{
		Severity: report.Info, Reason: reason, Field: field, Message: fmt.Sprintf("no issuer is asked for a certificate of %s: %s", host, why),
	}
}

// askForRest asks for the hosts of rules that no entry of tls is about.
func (r *reading) askForRest() {
	for host := range r.Paths {
		if host == "" || r.listed[host] {
			continue
		}
		if r.Implied == nil {
			r.Implied = map[string]*hosts.Implied{}
		}
		r.Implied[host] = &hosts.Implied{Certificate: r.automated(host), Refusal: r.refusal(host, "spec.rules")}
	}
}

// Refuse says why no issuer can be asked for a host, and what to do about it. Empty is that one can.
func (o *Issuance) Refuse(host string) (report.Reason, string) {
	name, wildcard := strings.CutPrefix(host, "*.")
	switch _, err := netip.ParseAddr(name); {
	case err == nil:
		return report.InvalidHost, "clients name no address in a TLS handshake, so that none can be chosen by it; use a name"
	case slices.ContainsFunc(strings.Split(name, "."), func(label string) bool { return len(label) > validation.DNS1123LabelMaxLength }):
		return report.InvalidHost, fmt.Sprintf("a part of it has more than %d characters, and no certificate can have that",
			validation.DNS1123LabelMaxLength)
	case !o.AnyName && !public(name):
		return report.HostNotPublic, "no public certificate authority issues for this name; name a Secret, or let the administrator set " +
			"\"issuer internal\", or the acme_ca of an authority that does"
	case wildcard && !o.Wildcards:
		return report.DNSChallengeRequired, "a wildcard needs the DNS challenge; name a Secret, or let the administrator set " +
			"\"issuer acme\" with a dns provider"
	}
	return "", ""
}

// notPublic are the ends of names that a public certificate authority cannot check, because they have no owner. They are those
// of RFC 6761, RFC 6762, RFC 7686 and RFC 8375, and the one that ICANN set apart for private use.
var notPublic = []string{".localhost", ".local", ".internal", ".home.arpa", ".test", ".example", ".invalid", ".onion"}

// public says whether a public certificate authority may issue for a name, or for the wildcard of it.
func public(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	ends := func(suffix string) bool { return strings.HasSuffix("."+name, suffix) }
	digits := strings.Trim(name[dot+1:], "0123456789") == ""
	return dot > 0 && !digits && !slices.ContainsFunc(notPublic, ends)
}

// What cert-manager goes by, in an Ingress of a user and in one that it makes to answer an HTTP-01 challenge.
const (
	managerPrefix = "acme.cert-manager.io/"
	managerSolver = "acme.cert-manager.io/http01-solver"
	managerOld    = "kubernetes.io/tls-acme"
)

var managerIssuers = []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"}

// manager returns the annotation or label by which the Ingress is cert-manager's, or nothing. No certificate is asked for
// then: two that do so for one host would be in each other's way.
func (r *reading) manager() string {
	if r.Object.Labels[managerSolver] == "true" {
		return managerSolver
	}
	for _, key := range slices.Sorted(maps.Keys(r.Object.Annotations)) {
		value := r.Object.Annotations[key]
		switch {
		case value == "":
		case slices.Contains(managerIssuers, key), strings.HasPrefix(key, managerPrefix), key == managerOld && value == "true":
			return key
		}
	}
	return ""
}
