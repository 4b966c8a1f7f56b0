package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/internal/hosts"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
	"github.com/k8singress/k8singress/internal/snapshot"
)

// issuance remembers for which hosts an issuer is asked. Three things decide that beyond what one host knows: a wildcard that
// answers for a host that no Ingress lists, the quota of the namespace, and which hosts are older than others there.
type issuance struct {
	requests map[string]*certificateRequest
	// queues have the requests of a namespace, in the order in which the quota takes them.
	queues map[string][]*certificateRequest
	// below has, by wildcard, the hosts that it answers for if no Ingress lists them. answers has what each of these wildcards is shown
	// with, if that is a certificate.
	below   map[string]set[string]
	answers map[string]*answer
}

// certificateRequest is a host whose certificate is to come from an issuer.
type certificateRequest struct {
	object      *networkingv1.Ingress
	certificate *ir.Certificate
	// refusal says why no issuer is asked. It is nil where one is.
	refusal *report.Problem
	// over says that the quota of the namespace has no room for it.
	over bool
}

func newIssuance() *issuance {
	return &issuance{
		requests: map[string]*certificateRequest{}, queues: map[string][]*certificateRequest{},
		below: map[string]set[string]{}, answers: map[string]*answer{},
	}
}

// certificate returns the one that is shown for a host. m may be nil.
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

// problems says to an Ingress why no issuer is asked for some of its hosts.
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
		Message: fmt.Sprintf("no issuer is asked for a certificate of %s: older hosts of the namespace %s have %d already, and that is the "+
			"most; name a Secret, or let the administrator raise hosts_per_namespace", report.List(over, len(over), 1), of.Namespace, quota),
	})
}

// issue brings up to date what the touched hosts have to do with issuers. Wildcards come first: other hosts depend on them,
// and they on no other.
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

// place notes a host under the wildcard that may answer for it, if one may.
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

// requeue gives hosts their places in the queues, and notes the objects whose hosts that moves over the quota, or back.
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

// wanted is what the Ingresses say of a host, if that is an issuer.
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
	return &certificateRequest{certificate: certificate, object: t.results[certificate.Origin].Object, refusal: m.Implied.Refusal}
}

// enqueue puts a request into the queue of its namespace, dequeue takes it out.
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
		panic("a request is not where it was put")
	}
	if n.queues[namespace] = slices.Delete(n.queues[namespace], i, i+1); len(n.queues[namespace]) == 0 {
		delete(n.queues, namespace)
	}
}

// compareRequests lets wildcards go first, because they answer for many, and the hosts of older Ingresses before others.
func compareRequests(a, b *certificateRequest) int {
	wild := func(a *certificateRequest) int { return strings.Count(a.certificate.Host, "*") }
	return cmp.Or(wild(b)-wild(a), snapshot.Older(a.object, b.object), cmp.Compare(a.certificate.Host, b.certificate.Host))
}
