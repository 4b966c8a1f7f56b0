package ingress

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// Issuance decides which hosts get a certificate from an issuer, and describes the names that issuers accept.
type Issuance struct {
	// Mode selects the hosts that get a certificate if neither the Ingress nor a ConfigMap selects them. It is one of
	// the values of auto-https. Annotations and ConfigMaps cannot override AutoHTTPSOff.
	Mode string
	// OnMissingSecret treats an entry whose Secret does not exist like an entry without a Secret.
	OnMissingSecret bool
	// Except lists the namespaces that get no certificate from an issuer, whatever their Ingresses request.
	Except []string
	// AnyName means that an issuer accepts names that are not public. Wildcards means that an issuer accepts wildcards.
	AnyName, Wildcards bool
}

// mode returns the value of auto-https that applies to the Ingress.
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

// overruled warns an Ingress that requests certificates from issuers although the administrator does not allow this. by
// is the option that forbids it.
func (r *reading) overruled(by string) {
	if r.Object.Annotations[annotations.OwnPrefix+"auto-https"] != "" &&
		r.annotations.AutoHTTPS != annotations.AutoHTTPSOff {
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(annotations.AutoHTTPS.Name),
			"the annotation has no effect, because %s disables certificates from issuers here", by)
	}
}

// ask requests the certificate of a listed host from an issuer, unless the host already has a certificate.
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

// refusal returns the reason why no issuer can issue a certificate for a host, or nil.
func (r *reading) refusal(host, field string) *report.Problem {
	reason, why := r.options.Issuance.Refuse(host)
	if why == "" {
		return nil
	}
	return &report.Problem{
		Severity: report.Info, Reason: reason, Field: field,
		Message: fmt.Sprintf("no certificate is requested for %s: %s", host, why),
	}
}

// askForRest requests certificates for hosts of rules that no entry of spec.tls covers.
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

// Refuse returns the reason why no issuer can issue a certificate for a host, with advice. The text is empty if an
// issuer can.
func (o *Issuance) Refuse(host string) (report.Reason, string) {
	name, wildcard := strings.CutPrefix(host, "*.")
	switch _, err := netip.ParseAddr(name); {
	case err == nil:
		return report.InvalidHost,
			"clients do not send IP addresses in TLS handshakes, so no certificate can be chosen by address; use a " +
				"host name"
	case slices.ContainsFunc(strings.Split(name, "."),
		func(label string) bool { return len(label) > validation.DNS1123LabelMaxLength }):
		return report.InvalidHost, fmt.Sprintf(
			"a label of the name has more than %d characters, which no certificate can contain",
			validation.DNS1123LabelMaxLength)
	case !o.AnyName && !public(name):
		return report.HostNotPublic,
			"no public certificate authority issues certificates for this name; name a Secret, or let the " +
				"administrator set \"issuer internal\", or the acme_ca of an authority that does"
	case wildcard && !o.Wildcards:
		return report.DNSChallengeRequired,
			"a wildcard requires the DNS challenge; name a Secret, or let the administrator set \"issuer acme\" " +
				"with a dns provider"
	}
	return "", ""
}

// notPublic are the suffixes of names for which a public certificate authority cannot issue, because the names have no
// owner. They come from RFC 6761, RFC 6762, RFC 7686 and RFC 8375, and ICANN reserved .internal for private use.
var notPublic = []string{".localhost", ".local", ".internal", ".home.arpa", ".test", ".example", ".invalid", ".onion"}

// public reports whether a public certificate authority may issue a certificate for a name or for its wildcard.
func public(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	ends := func(suffix string) bool { return strings.HasSuffix("."+name, suffix) }
	digits := strings.Trim(name[dot+1:], "0123456789") == ""
	return dot > 0 && !digits && !slices.ContainsFunc(notPublic, ends)
}

// These annotations and labels identify Ingresses that cert-manager manages, and the Ingresses that it creates to solve
// HTTP-01 challenges.
const (
	managerPrefix = "acme.cert-manager.io/"
	managerSolver = "acme.cert-manager.io/http01-solver"
	managerOld    = "kubernetes.io/tls-acme"
)

var managerIssuers = []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"}

// manager returns the annotation or label that hands the Ingress to cert-manager, or "". No issuer is used then,
// because two clients that request certificates for one host would disturb each other.
func (r *reading) manager() string {
	if r.Object.Labels[managerSolver] == "true" {
		return managerSolver
	}
	for _, key := range slices.Sorted(maps.Keys(r.Object.Annotations)) {
		value := r.Object.Annotations[key]
		switch {
		case value == "":
		case slices.Contains(managerIssuers, key), strings.HasPrefix(key, managerPrefix), key == managerOld &&
			value == "true":
			return key
		}
	}
	return ""
}
