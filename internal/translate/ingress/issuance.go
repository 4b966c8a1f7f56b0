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

// Issuance configures which hosts get a certificate from an issuer, and which names the issuers accept.
type Issuance struct {
	// Mode is the value of auto-https if neither the Ingress nor the ConfigMap sets auto-https. If Mode is
	// AutoHTTPSOff, Ingresses and ConfigMaps cannot override it.
	Mode string
	// OnMissingSecret means that hosts whose Secret does not exist get a certificate from an issuer, as if secretName
	// were not set.
	OnMissingSecret bool
	// OnDemand is true if a module decides for which names certificates are ordered on demand.
	OnDemand bool
	// Except lists the namespaces whose Ingresses never get certificates from an issuer.
	Except []string
	// AnyName is true if an issuer accepts names that are not public. Wildcards is true if an issuer accepts wildcards.
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

// The method overruled adds a warning to an Ingress whose annotation requests certificates from issuers, although an
// option forbids this. by is the name of the option.
func (r *reading) overruled(by string) {
	if r.Object.Annotations[annotations.OwnPrefix+"auto-https"] != "" &&
		r.annotations.AutoHTTPS != annotations.AutoHTTPSOff {
		r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(annotations.AutoHTTPS.Name),
			"the annotation has no effect, because %s disables certificates from issuers for this Ingress", by)
	}
}

// The method ask requests a certificate from an issuer for a host in spec.tls. It does nothing if the host already has
// a certificate.
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

// OnDemandIsOff is the warning for an Ingress with on-demand-tls if the administrator has not set Caddy's global option
// on_demand_tls.
const OnDemandIsOff = "the annotation has no effect, because no permission module decides for which names " +
	"certificates may be requested: the administrator has to add on_demand_tls { ask <url> } to the global options " +
	"of the Caddyfile"

// onDemand sets OnDemand if the Ingress requests certificates on demand, and the administrator allows it. Otherwise, it
// adds a warning with the reason.
func (r *reading) onDemand() {
	if !r.annotations.OnDemandTLS {
		return
	}
	var problem string
	switch {
	case !r.options.Issuance.OnDemand:
		problem = OnDemandIsOff
	case r.mode() == annotations.AutoHTTPSOff:
		problem = "the annotation has no effect, because certificates from issuers are disabled for this Ingress"
	case r.Fallback == nil && !r.servesManyNames():
		problem = "the annotation has no effect, because each rule of the Ingress has a single host: list the hosts " +
			"in spec.tls, or add a rule without a host or with a wildcard"
	default:
		r.OnDemand = true
		return
	}
	r.problem(report.Warning, report.InvalidAnnotation, report.AnnotationField(annotations.OnDemandTLS.Name), "%s",
		problem)
}

// servesManyNames reports whether the Ingress has a rule without a host or with a wildcard.
func (r *reading) servesManyNames() bool {
	for host := range r.Paths {
		if host == "" || strings.HasPrefix(host, "*.") {
			return true
		}
	}
	return false
}

func (r *reading) automated(host string) *ir.Certificate {
	return &ir.Certificate{Host: host, Automated: true, Origin: r.origin()}
}

// refusal returns a problem with the reason why no issuer can issue a certificate for a host. It returns nil if an
// issuer can.
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

// askForRest requests certificates for the hosts of rules to which no entry of spec.tls applies.
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

// Refuse returns the reason why no issuer can issue a certificate for a host, and an explanation for messages. The
// explanation is empty if an issuer can issue the certificate.
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
			"no public certificate authority issues certificates for this name; use a Secret with a certificate, or " +
				"ask the administrator to set \"issuer internal\", or acme_ca to a private certificate authority"
	case wildcard && !o.Wildcards:
		return report.DNSChallengeRequired,
			"a wildcard requires the DNS challenge; use a Secret with a certificate, or ask the administrator to set " +
				"\"issuer acme\" with a dns provider"
	}
	return "", ""
}

// notPublic lists the suffixes of names that cannot be registered, so public certificate authorities issue no
// certificates for them. They come from RFC 6761, RFC 6762, RFC 7686 and RFC 8375; ICANN reserved .internal for private
// use.
var notPublic = []string{".localhost", ".local", ".internal", ".home.arpa", ".test", ".example", ".invalid", ".onion"}

// The function public reports whether a public certificate authority may issue a certificate for a name, or for the
// wildcard below it.
func public(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	ends := func(suffix string) bool { return strings.HasSuffix("."+name, suffix) }
	digits := strings.Trim(name[dot+1:], "0123456789") == ""
	return dot > 0 && !digits && !slices.ContainsFunc(notPublic, ends)
}

// These annotations and labels identify Ingresses whose certificates cert-manager manages, and Ingresses that
// cert-manager creates to solve HTTP-01 challenges.
const (
	managerPrefix = "acme.cert-manager.io/"
	managerSolver = "acme.cert-manager.io/http01-solver"
	managerOld    = "kubernetes.io/tls-acme"
)

var managerIssuers = []string{"cert-manager.io/cluster-issuer", "cert-manager.io/issuer"}

// manager returns the annotation or label that makes cert-manager manage the certificates of the Ingress, or "" if
// there is no such annotation or label. If cert-manager manages the certificates, this controller requests none from
// its own issuers, because two ACME clients that request certificates for the same host would interfere with each
// other.
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
