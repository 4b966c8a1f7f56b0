package ingress

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// tlsEntry is one entry of spec.tls.
type tlsEntry struct {
	// secret is the name of the Secret, or the zero value if secretName is not set. exists is true if the Secret
	// exists. denied is true if the controller is not allowed to read the Secret.
	secret ir.Name
	exists bool
	denied bool
	// hosts are the hosts of the entry. If the entry lists no hosts, they are the hosts of all rules. The empty host is
	// not included.
	hosts []string
	field string
}

// tlsHosts returns all hosts that are listed in spec.tls. all is true if an entry lists no hosts, and therefore applies
// to the hosts of all rules.
func tlsHosts(entries []networkingv1.IngressTLS) (listed []string, all bool) {
	for i := range entries {
		all = all || len(entries[i].Hosts) == 0
		for _, h := range entries[i].Hosts {
			if host, err := Host(h); err == nil {
				listed = append(listed, host)
			}
		}
	}
	return listed, all
}

// tls determines where the certificate of each host comes from. A Secret that exists takes precedence over an issuer.
// If the Secret of a host does not exist, an issuer may be used instead.
func (r *reading) tls() {
	entries := make([]*tlsEntry, 0, len(r.Object.Spec.TLS))
	for i := range r.Object.Spec.TLS {
		entries = append(entries, r.tlsEntry(&r.Object.Spec.TLS[i], fmt.Sprintf("spec.tls[%d]", i)))
	}
	for _, e := range entries {
		if e.exists {
			r.secret(e)
		}
	}
	mode := r.mode()
	for _, e := range entries {
		if mode != annotations.AutoHTTPSOff &&
			(e.secret.IsZero() || !e.exists && !e.denied && r.options.Issuance.OnMissingSecret) {
			r.issuer(e)
		}
	}
	for _, e := range entries {
		if !e.exists {
			r.without(e, entries)
		}
	}
	if mode == annotations.AutoHTTPSAll {
		r.askForRest()
	}
}

func (r *reading) tlsEntry(entry *networkingv1.IngressTLS, field string) *tlsEntry {
	e := &tlsEntry{field: field}
	if entry.SecretName != "" {
		e.secret = ir.Name{Namespace: r.Object.Namespace, Name: entry.SecretName}
		ref := e.secret.Of(kinds.Secret)
		r.depend(ref)
		_, e.exists = snapshot.Of[*corev1.Secret](r.snapshot).Get(ref.Namespace, ref.Name)
		e.denied = !e.exists && r.snapshot.Denied(ref)
	}
	if len(entry.Hosts) == 0 {
		e.hosts = slices.Sorted(maps.Keys(r.Paths))
	}
	for _, h := range entry.Hosts {
		host, err := Host(h)
		if err != nil {
			r.problem(report.Error, report.InvalidHost, field+".hosts", "%v", err)
			continue
		}
		e.hosts = append(e.hosts, host)
	}
	e.hosts = slices.DeleteFunc(e.hosts, func(host string) bool { return host == "" })
	for _, host := range e.hosts {
		r.listed[host] = true
	}
	return e
}

// secret configures the Secret of the entry e as the certificate of the hosts of the entry. A host may have two
// Secrets, for example with an ECDSA key and with an RSA key: ingress-nginx no longer supports two key pairs in one
// Secret, so this is the only way to have both.
func (r *reading) secret(e *tlsEntry) {
	for _, host := range e.hosts {
		c := r.Certificates[host]
		switch {
		case c == nil:
			r.Certificates[host] = &ir.Certificate{Host: host, Secret: e.secret, Origin: r.origin()}
			if !e.exists {
				r.Absent = append(r.Absent, host)
			}
		case c.Automated || c.Secret == e.secret || c.SecondSecret == e.secret:
		case c.SecondSecret.IsZero():
			c.SecondSecret = e.secret
		default:
			r.problem(report.Warning, report.HostConflict, e.field+".secretName",
				"the host %s already has the certificates of the Secrets %s and %s, and the maximum is two: the "+
					"Secret of this entry is ignored",
				host, c.Secret.Name, c.SecondSecret.Name)
		}
	}
}

func (r *reading) issuer(e *tlsEntry) {
	if len(e.hosts) == 0 && e.secret.IsZero() {
		r.problem(report.Warning, report.InvalidHost, e.field,
			"no certificate is requested, because neither the entry nor a rule names a host: list the hosts")
	}
	for _, host := range e.hosts {
		r.ask(host, e.field)
	}
}

// The method without is called for an entry e of spec.tls whose secretName is missing, or whose Secret does not exist.
// It reports a problem if this affects the certificate of the hosts. The parameter all contains all entries of
// spec.tls.
func (r *reading) without(e *tlsEntry, all []*tlsEntry) {
	if e.secret.IsZero() {
		if key := r.manager(); key != "" && key != managerSolver {
			r.certificateProblem(e.hosts, "",
				report.Problem{Severity: report.Warning, Reason: report.SecretNotFound, Field: e.field,
					Message: key +
						" hands the certificates of the Ingress to cert-manager, which requires secretName in this " +
						"entry: the default certificate is used"})
		}
		return
	}
	asked := len(e.hosts) > 0
	for _, host := range e.hosts {
		asked = asked && r.Certificates[host] != nil && r.Certificates[host].Automated
	}
	r.secret(e)
	missing, passed := "the Secret %s does not exist: %s until it exists",
		"the Secret %s does not exist and is not needed: %s"
	if e.denied {
		missing = "the controller may not read the Secret %s: allow its service account the verbs list and watch " +
			"for it, and use at most " + strconv.Itoa(snapshot.MaxByName) + " Secrets in a namespace; until then, %s"
		passed = "the controller may not read the Secret %s, which is not needed: %s"
	}
	p := report.Problem{
		Severity: report.Error, Reason: report.SecretNotFound, Field: e.field + ".secretName",
		Message: fmt.Sprintf(missing, e.secret, shownWithout(e, all)),
	}
	if asked {
		p.Severity = report.Info
		p.Message = fmt.Sprintf(
			"the Secret %s does not exist: until it exists, a certificate is requested as if secretName were not "+
				"set (option acme_on_missing_secret)",
			e.secret)
	}
	r.certificateProblem(e.hosts, fmt.Sprintf(passed, e.secret, endsElsewhere), p)
}

const endsElsewhere = "the TLS connections of its hosts are passed through to the backend (ssl-passthrough), and " +
	"clients get the certificate of the backend"

// CertificateProblem is a problem with the certificate of some hosts.
type CertificateProblem struct {
	report.Problem
	// Hosts are the affected hosts. If the TLS connections of all these hosts are passed through, the message Passed is
	// reported instead of Problem, or nothing if Passed is empty.
	Hosts  []string
	Passed string
}

func (r *reading) certificateProblem(hosts []string, passed string, p report.Problem) {
	r.CertificateProblems = append(r.CertificateProblems, CertificateProblem{Problem: p, Hosts: hosts, Passed: passed})
}

// shownWithout describes, for a message, which certificate clients get while the Secret of the entry e is missing.
func shownWithout(e *tlsEntry, all []*tlsEntry) string {
	for _, other := range all {
		if other.exists && slices.Equal(other.hosts, e.hosts) {
			return "the certificate of the other entry for the same hosts is used"
		}
	}
	return "the default certificate is used"
}

// backendTLS checks whether the Ingress may use the Secret in proxy-ssl-secret: a Secret in another namespace is only
// allowed with allow-cross-namespace-resources. It does not read the content of the Secret.
func (r *reading) backendTLS() {
	t := r.annotations.Forwarding.TLS
	if t == nil {
		r.Unsecured = r.annotations.UsesTLS() && !r.annotations.Closed && !r.annotations.BackendTLSByPath
		return
	}
	if t.Secret.IsZero() {
		return
	}
	if t.Secret.Namespace == r.Object.Namespace || r.annotations.CrossNamespace {
		r.depend(t.Secret.Of(kinds.Secret))
		return
	}
	r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.BackendTLSSecret),
		"the Secret %s is in another namespace: all requests for this Ingress get 503. Copy it to %s, or set "+
			"allow-cross-namespace-resources in the ConfigMap", t.Secret,
		r.Object.Namespace)
	// The author of the Ingress may not be allowed to read the Secret, so do not use it.
	r.annotations.Forwarding.TLS, r.annotations.Closed, r.LoadBalancing.HealthCheck = nil, true, nil
}

// users sets UsersSecret, the Secret that contains the users for basic authentication. It does not read the content of
// the Secret.
func (r *reading) users() {
	if !r.annotations.AsksPassword() {
		return
	}
	text, bad := r.annotations.SecretOfUsers()
	secret := ir.Name{Namespace: r.Object.Namespace, Name: text}
	if namespace, name, has := strings.Cut(text, "/"); has {
		secret = ir.Name{Namespace: namespace, Name: name}
	}
	switch {
	case bad:
		// The problem with the annotation has already been reported.
		r.annotations.Closed = true
	case text == "":
		r.closeFor("auth-type", report.InvalidAnnotation,
			"the annotation auth-secret, which names the Secret with the users, is missing: "+ingressClosed+
				". Add the annotation")
	case secret.Namespace != r.Object.Namespace && !r.annotations.CrossNamespace:
		r.closeFor("auth-secret", report.InvalidAnnotation,
			"the Secret %s is in another namespace: "+ingressClosed+
				". Copy it to %s, or set allow-cross-namespace-resources in the ConfigMap", secret, r.Object.Namespace)
	default:
		r.annotations.UsersSecret = secret
		r.depend(secret.Of(kinds.Secret))
	}
}

// clientAuth sets ClientAuth, the client certificate settings of the hosts, from the annotations. It does not read the
// content of the Secret.
func (r *reading) clientAuth() {
	if !r.annotations.AsksClients() {
		return
	}
	auth := r.annotations.ClientAuth
	auth.Origin = r.origin()
	if !auth.Secret.IsZero() && auth.Secret.Namespace != r.Object.Namespace && !r.annotations.CrossNamespace {
		r.problem(report.Error, report.InvalidAnnotation, report.AnnotationField(report.ClientAuthSecret),
			"the Secret %s is in another namespace: every request for the hosts of this Ingress gets 403. Copy it "+
				"to %s, or set allow-cross-namespace-resources in the ConfigMap", auth.Secret, r.Object.Namespace)
		auth.Secret, auth.Closed = ir.Name{}, true
	}
	if !auth.Secret.IsZero() {
		r.depend(auth.Secret.Of(kinds.Secret))
	}
	r.ClientAuth = &auth
}
