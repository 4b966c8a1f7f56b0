package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/hosts"
)

// issuance tracks the hosts that need a certificate from an issuer. Three things outside of a host decide about its
// certificate: the certificate of the wildcard above it, the quota of its namespace, and the older hosts of the
// namespace.
type issuance struct {
	requests map[string]*certificateRequest
	// queues holds the requests of each namespace, in the order in which the quota accepts them.
	queues map[string][]*certificateRequest
	// below holds, by wildcard, the hosts that use its certificate unless an Ingress lists them for TLS. answers holds
	// the certificates of these wildcards. A wildcard without a certificate has no entry.
	below   map[string]set[string]
	answers map[string]*answer
}

// certificateRequest requests the certificate of one host from an issuer.
type certificateRequest struct {
	object      *networkingv1.Ingress
	certificate *ir.Certificate
	// refusal explains why no issuer can issue the certificate. It is nil if an issuer can.
	refusal *report.Problem
	// over means that the request exceeds the quota of the namespace.
	over bool
}

func newIssuance() *issuance {
	return &issuance{
		requests: map[string]*certificateRequest{}, queues: map[string][]*certificateRequest{},
		below: map[string]set[string]{}, answers: map[string]*answer{},
	}
}

// certificate returns the certificate of a host, or nil if it has none. m may be nil.
func (n *issuance) certificate(host string, m *hosts.Merged) *ir.Certificate {
	switch a := n.requests[host]; {
	case a != nil && (a.over || a.refusal != nil):
		return nil
	case a != nil:
		return a.certificate
	case m != nil:
		return m.Certificate
	}
	return nil
}

// problems explains to an Ingress why some of its hosts get no certificate from an issuer. quota is the maximum number
// of hosts in a namespace.
func (n *issuance) problems(hosts []string, of ir.Ref, quota int) []report.Problem {
	var all []report.Problem
	var over []string
	for _, host := range hosts {
		a := n.requests[host]
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
				"the maximum: name a Secret, or let the administrator raise the option hosts_per_namespace",
			report.List(over, len(over), 1),
			of.Namespace, quota),
	})
}

// issue updates the certificate requests of the touched hosts. Wildcards come first, because other hosts depend on
// them, and they do not depend on other hosts.
func (t *Translator) issue(c *change, s *snapshot.Snapshot) {
	var wildcards []string
	for host := range c.hosts {
		t.issuance.place(host, t.merged[host])
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
		for dependent := range t.turned(s, host) {
			others = append(others, dependent)
		}
	}
	t.requeue(c, others)
}

// place records a host below the wildcard whose certificate it may use, or removes the record.
func (n *issuance) place(host string, m *hosts.Merged) {
	wildcard := hosts.WildcardOf(host)
	if wildcard == "" {
		return
	}
	if m == nil || m.Implied == nil {
		if delete(n.below[wildcard], host); len(n.below[wildcard]) == 0 {
			delete(n.below, wildcard)
		}
		return
	}
	if n.below[wildcard] == nil {
		n.below[wildcard] = set[string]{}
	}
	n.below[wildcard][host] = struct{}{}
}

// requeue updates the requests of hosts. It also marks the hosts and objects whose requests now exceed the quota, or no
// longer do.
func (t *Translator) requeue(c *change, hosts []string) {
	n, namespaces := t.issuance, set[string]{}
	for _, host := range hosts {
		c.hosts[host] = struct{}{}
		old, next := n.requests[host], t.wanted(host)
		n.dequeue(old)
		n.enqueue(next)
		delete(n.requests, host)
		if next != nil {
			n.requests[host] = next
		}
		for _, a := range []*certificateRequest{old, next} {
			if a != nil {
				c.objects[a.certificate.Origin] = struct{}{}
				namespaces[a.object.Namespace] = struct{}{}
			}
		}
	}
	for namespace := range namespaces {
		for i, a := range n.queues[namespace] {
			if over := t.options.HostsPerNamespace > 0 && i >= t.options.HostsPerNamespace; over != a.over {
				a.over = over
				c.hosts[a.certificate.Host], c.objects[a.certificate.Origin] = struct{}{}, struct{}{}
			}
		}
	}
}

// wanted returns the certificate request of a host, or nil if the host needs no certificate from an issuer.
func (t *Translator) wanted(host string) *certificateRequest {
	m := t.merged[host]
	switch {
	case m == nil:
		return nil
	case m.Certificate != nil && m.Certificate.Automated:
		return &certificateRequest{certificate: m.Certificate, object: t.results[m.Certificate.Origin].Object}
	case m.Certificate != nil || m.Implied == nil:
		return nil
	}
	if t.issuance.answers[hosts.WildcardOf(host)].covers(host, m.Implied.Certificate.Origin.Namespace) {
		return nil
	}
	certificate := m.Implied.Certificate
	return &certificateRequest{certificate: certificate, object: t.results[certificate.Origin].Object,
		refusal: m.Implied.Refusal}
}

// enqueue adds a request to the queue of its namespace, dequeue removes it. Both ignore nil and refused requests.
func (n *issuance) enqueue(a *certificateRequest) {
	if a == nil || a.refusal != nil {
		return
	}
	queue := n.queues[a.object.Namespace]
	i, _ := slices.BinarySearchFunc(queue, a, compareRequests)
	n.queues[a.object.Namespace] = slices.Insert(queue, i, a)
}

func (n *issuance) dequeue(a *certificateRequest) {
	if a == nil || a.refusal != nil {
		return
	}
	namespace := a.object.Namespace
	i, found := slices.BinarySearchFunc(n.queues[namespace], a, compareRequests)
	if !found {
		panic("certificate request not found in its queue")
	}
	if n.queues[namespace] = slices.Delete(n.queues[namespace], i, i+1); len(n.queues[namespace]) == 0 {
		delete(n.queues, namespace)
	}
}

// compareRequests sorts wildcards first, because their certificates cover many hosts. Then it sorts hosts of older
// Ingresses before hosts of younger ones.
func compareRequests(a, b *certificateRequest) int {
	wild := func(a *certificateRequest) int { return strings.Count(a.certificate.Host, "*") }
	return cmp.Or(wild(b)-wild(a), snapshot.Older(a.object, b.object),
		cmp.Compare(a.certificate.Host, b.certificate.Host))
}
