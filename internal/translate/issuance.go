package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/shrinking"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// issuance tracks the certificates that hosts need from issuers. Whether a host gets such a certificate depends on the
// host, on the certificate of the wildcard above it, on the limit for its namespace, and on older hosts of the
// namespace, which take precedence.
type issuance struct {
	requests shrinking.Map[string, *certificateRequest]
	// queues maps namespaces to the certificate requests of their hosts, sorted by precedence. The first requests are
	// accepted until the limit for the namespace is reached.
	queues shrinking.Map[string, []*certificateRequest]
	// The field below maps each wildcard to the hosts that may use the certificate of the wildcard. Hosts that are
	// listed in spec.tls are not included. The field answers maps each wildcard to its certificate. Wildcards without a
	// certificate are not included.
	below   shrinking.Map[string, *shrinking.Map[string, struct{}]]
	answers shrinking.Map[string, *answer]
}

// certificateRequest is a request for a certificate of one host from an issuer.
type certificateRequest struct {
	object      *networkingv1.Ingress
	certificate *ir.Certificate
	// refusal is the reason why no issuer can issue the certificate, or nil if an issuer can.
	refusal *report.Problem
	// over is true if the host gets no certificate, because the limit for certificates in its namespace is reached.
	over bool
}

// certificate returns the certificate of a host, or nil if the host has none. m is the result of hosts.Merge for the
// host; it may be nil.
func (n *issuance) certificate(host string, m *hosts.Merged) *ir.Certificate {
	switch a := n.requests.Get(host); {
	case a != nil && (a.over || a.refusal != nil):
		return nil
	case a != nil:
		return a.certificate
	case m != nil:
		return m.Certificate
	}
	return nil
}

// problems returns the problems to report for an Ingress if some of its hosts get no certificate from an issuer. quota
// is the maximum number of hosts per namespace that get such certificates.
func (n *issuance) problems(hosts []string, of ir.Ref, quota int) []report.Problem {
	var all []report.Problem
	var over []string
	for _, host := range hosts {
		a := n.requests.Get(host)
		switch {
		case a == nil || a.certificate.Origin != of:
		case a.refusal != nil:
			all = append(all, *a.refusal)
		case a.over:
			over = append(over, host)
		}
	}
	if len(over) == 0 {
		return all
	}
	return append(all, report.Problem{
		Severity: report.Warning, Reason: report.QuotaExceeded, Field: "spec",
		Message: fmt.Sprintf(
			"no certificate is requested for %s, because older hosts of the namespace %s already have %d, which is "+
				"the maximum: use a Secret with a certificate, or ask the administrator to raise the option "+
				"hosts_per_namespace",
			report.List(over, len(over), 1),
			of.Namespace, quota),
	})
}

// The method issue updates the certificate requests of the hosts that changed. It starts with wildcards, because other
// hosts may use their certificates.
func (t *Translator) issue(c *change, s *snapshot.Snapshot) {
	var wildcards []string
	for host := range c.hosts {
		t.issuance.place(host, t.merged.Get(host))
		if strings.HasPrefix(host, "*.") {
			wildcards = append(wildcards, host)
		}
	}
	t.requeue(c, wildcards)
	var others []string
	for host := range c.hosts {
		if !strings.HasPrefix(host, "*.") {
			others = append(others, host)
			continue
		}
		for dependent := range t.turned(s, host).Keys() {
			others = append(others, dependent)
		}
	}
	t.requeue(c, others)
}

// The method place updates n.below for a host: it adds the host if the host may use the certificate of the wildcard
// above it, and removes the host otherwise.
func (n *issuance) place(host string, m *hosts.Merged) {
	wildcard := hosts.WildcardOf(host)
	if wildcard == "" {
		return
	}
	below := n.below.Get(wildcard)
	if m == nil || m.Implied == nil {
		if below == nil {
			return
		}
		if below.Delete(host); below.Len() == 0 {
			n.below.Delete(wildcard)
		}
		return
	}
	if below == nil {
		below = &shrinking.Map[string, struct{}]{}
		n.below.Set(wildcard, below)
	}
	below.Set(host, struct{}{})
}

// requeue updates the certificate requests of hosts. Other requests in the same namespaces may then exceed the limit
// for certificates, or no longer exceed it. requeue adds the hosts and objects of all changed requests to c.
func (t *Translator) requeue(c *change, hosts []string) {
	n, namespaces := t.issuance, set[string]{}
	for _, host := range hosts {
		c.hosts[host] = struct{}{}
		old, next := n.requests.Get(host), t.wanted(host)
		n.dequeue(old)
		n.enqueue(next)
		if next != nil {
			n.requests.Set(host, next)
		} else {
			n.requests.Delete(host)
		}
		for _, a := range []*certificateRequest{old, next} {
			if a != nil {
				c.objects[a.certificate.Origin] = struct{}{}
				namespaces[a.object.Namespace] = struct{}{}
			}
		}
	}
	for namespace := range namespaces {
		for i, a := range n.queues.Get(namespace) {
			if over := t.options.HostsPerNamespace > 0 && i >= t.options.HostsPerNamespace; over != a.over {
				a.over = over
				c.hosts[a.certificate.Host], c.objects[a.certificate.Origin] = struct{}{}, struct{}{}
			}
		}
	}
}

// The method wanted returns the certificate request of a host, or nil if the host does not need a certificate from an
// issuer.
func (t *Translator) wanted(host string) *certificateRequest {
	m := t.merged.Get(host)
	if m == nil {
		return nil
	}
	certificate, refusal := fromIssuer(m, func(namespace string) bool {
		return t.issuance.answers.Get(hosts.WildcardOf(host)).covers(host, namespace)
	})
	if certificate == nil {
		return nil
	}
	return &certificateRequest{
		certificate: certificate, object: t.results.Get(certificate.Origin).Object, refusal: refusal,
	}
}

// fromIssuer returns the certificate that a host needs from an issuer, and the reason why no issuer can issue it. It
// returns nil if the host needs no such certificate. covered reports whether the certificate of a wildcard is valid for
// the host, and may be used in a namespace.
func fromIssuer(m *hosts.Merged, covered func(namespace string) bool) (*ir.Certificate, *report.Problem) {
	switch {
	case m.Certificate != nil && m.Certificate.Automated:
		return m.Certificate, nil
	case m.Certificate != nil || m.Implied == nil || covered(m.Implied.Certificate.Origin.Namespace):
		return nil, nil
	}
	return m.Implied.Certificate, m.Implied.Refusal
}

// enqueue adds a request to the queue of its namespace, and dequeue removes it. Both functions do nothing if the
// request is nil or was refused.
func (n *issuance) enqueue(a *certificateRequest) {
	if a == nil || a.refusal != nil {
		return
	}
	queue := n.queues.Get(a.object.Namespace)
	i, _ := slices.BinarySearchFunc(queue, a, compareRequests)
	n.queues.Set(a.object.Namespace, slices.Insert(queue, i, a))
}

func (n *issuance) dequeue(a *certificateRequest) {
	if a == nil || a.refusal != nil {
		return
	}
	namespace := a.object.Namespace
	queue := n.queues.Get(namespace)
	i, found := slices.BinarySearchFunc(queue, a, compareRequests)
	if !found {
		panic("certificate request not found in its queue")
	}
	if queue = slices.Delete(queue, i, i+1); len(queue) == 0 {
		n.queues.Delete(namespace)
	} else {
		n.queues.Set(namespace, shrinking.Trim(queue))
	}
}

// compareRequests sorts requests for wildcards first, because their certificates are valid for many hosts. Otherwise,
// requests of older Ingresses come first.
func compareRequests(a, b *certificateRequest) int {
	wild := func(a *certificateRequest) int { return strings.Count(a.certificate.Host, "*") }
	return cmp.Or(wild(b)-wild(a), snapshot.Older(a.object, b.object),
		cmp.Compare(a.certificate.Host, b.certificate.Host))
}
