package chart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// policed is a release with a NetworkPolicy. Its ports have the form "TCP/80".
type policed struct {
	policy networkingv1.NetworkPolicy
	pod    corev1.PodTemplateSpec
	// open holds the ports that are open to everyone, and inner those that are open to some peers.
	open, inner map[string]bool
}

// TestPolicyAllowsServedPorts checks each scenario that has a NetworkPolicy. Everyone can reach all ports that Services
// use or that containers list, except the port of probes and metrics, which has its own list of peers, and the port of
// the webhook if it has one.
func TestPolicyAllowsServedPorts(t *testing.T) {
	found := 0
	for _, s := range variants(t) {
		objects := mustRender(t, s.with).objects(t)
		if p := readPolicy(t, objects); p != nil {
			found++
			t.Run(s.name, func(t *testing.T) { p.check(t, objects) })
		}
	}
	if found < 20 {
		t.Errorf("%d scenarios have a NetworkPolicy", found)
	}
	for _, shape := range []string{"cluster", "namespaces", "least"} {
		objects := renderShape(t, shape).objects(t)
		t.Run("deploy "+shape, func(t *testing.T) { mustPolicy(t, objects).check(t, objects) })
	}
}

// readPolicy returns the NetworkPolicy for the pods of the controller. It returns nil if there is no such policy.
func readPolicy(t *testing.T, objects []values) *policed {
	t.Helper()
	p := &policed{open: map[string]bool{}, inner: map[string]bool{}}
	for _, object := range ofController(objects) {
		switch object["kind"] {
		case "NetworkPolicy":
			convert(t, object, &p.policy)
		case "Deployment", "DaemonSet":
			template, _ := find(object, []string{"spec", "template"})
			convert(t, template.(values), &p.pod)
		}
	}
	for _, rule := range p.policy.Spec.Ingress {
		into := p.open
		if len(rule.From) > 0 {
			into = p.inner
		}
		for _, port := range rule.Ports {
			into[fmt.Sprintf("%s/%s", *port.Protocol, port.Port)] = true
		}
	}
	if p.policy.Name == "" {
		return nil
	}
	return p
}

// mustPolicy is like readPolicy, but fails the test if there is no NetworkPolicy.
func mustPolicy(t *testing.T, objects []values) *policed {
	t.Helper()
	p := readPolicy(t, objects)
	if p == nil {
		t.Fatal("there is no NetworkPolicy")
	}
	return p
}

// ofController returns the objects of the controller, without the objects of the default backend.
func ofController(objects []values) []values {
	return slices.DeleteFunc(slices.Clone(objects), func(object values) bool {
		component, _ := find(object, []string{"metadata", "labels", "app.kubernetes.io/component"})
		return component != "controller"
	})
}

func convert(t *testing.T, from values, into any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, into); err != nil {
		t.Fatal(err)
	}
}

// check checks which ports the NetworkPolicy opens for everyone, and which ones for some peers.
func (p *policed) check(t *testing.T, objects []values) {
	t.Helper()
	if p.open["TCP/10254"] || p.open["TCP/10300"] || len(p.inner) == 0 {
		t.Errorf("the port of probes must have peers: everyone reaches %v, and some %v", sorted(p.open),
			sorted(p.inner))
	}
	if len(p.policy.Spec.Egress) != 1 || len(p.policy.Spec.Egress[0].To)+len(p.policy.Spec.Egress[0].Ports) > 0 {
		t.Errorf("the pods may not go everywhere: %v", p.policy.Spec.Egress)
	}
	for name, port := range p.served(t, objects) {
		restricted := strings.Contains(name, "metrics") || strings.Contains(name, "webhook") && p.inner[port]
		if p.open[port] == restricted || restricted && !p.inner[port] {
			t.Errorf("%s is %s: everyone reaches %v, and some %v", name, port, sorted(p.open), sorted(p.inner))
		}
	}
	p.checkProbes(t)
}

// checkProbes checks that a rule of the NetworkPolicy allows the port of each probe.
func (p *policed) checkProbes(t *testing.T) {
	t.Helper()
	for _, container := range p.pod.Spec.Containers {
		for _, probe := range []*corev1.Probe{container.StartupProbe, container.LivenessProbe,
			container.ReadinessProbe} {
			if probe == nil || probe.HTTPGet == nil {
				continue
			}
			if port := p.resolve("TCP", probe.HTTPGet.Port); !p.open[port] && !p.inner[port] {
				t.Errorf("no rule allows the port %s of a probe", port)
			}
		}
	}
}

// served returns the ports that Services use and that containers list, with a name for each.
func (p *policed) served(t *testing.T, objects []values) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, object := range ofController(objects) {
		if object["kind"] != "Service" {
			continue
		}
		var service corev1.Service
		convert(t, object, &service)
		for _, port := range service.Spec.Ports {
			all["the port "+port.Name+" of "+service.Name] = p.resolve(port.Protocol, port.TargetPort)
		}
	}
	for _, container := range p.pod.Spec.Containers {
		for _, port := range container.Ports {
			protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
			all["the port "+port.Name+" of "+container.Name] = fmt.Sprintf("%s/%d", protocol, port.ContainerPort)
		}
	}
	return all
}

// resolve returns the port of the pod as text. A named port is replaced by its number.
func (p *policed) resolve(protocol corev1.Protocol, port intstr.IntOrString) string {
	for _, container := range p.pod.Spec.Containers {
		for _, listed := range container.Ports {
			if port.Type == intstr.String && listed.Name == port.StrVal {
				port = intstr.FromInt32(listed.ContainerPort)
			}
		}
	}
	return fmt.Sprintf("%s/%s", protocol, port.String())
}

func sorted(ports map[string]bool) []string { return slices.Sorted(maps.Keys(ports)) }

// TestPolicyIsMade checks that there is a NetworkPolicy unless the values turn it off, or it could block ports that the
// chart does not know. Then NOTES says why.
func TestPolicyIsMade(t *testing.T) {
	var all []struct {
		Name   string `json:"name"`
		Values values `json:"values"`
		Made   bool   `json:"made"`
		// Why is the reason in NOTES.
		Why string `json:"why"`
	}
	readYAML(t, "testdata/policies.yaml", &all)
	const says = "There is no NetworkPolicy"
	for _, c := range all {
		t.Run(c.Name, func(t *testing.T) {
			r := mustRender(t, c.Values)
			if made := readPolicy(t, r.objects(t)) != nil; made != c.Made {
				t.Errorf("there is a NetworkPolicy: %v", made)
			}
			if !strings.Contains(r.notes, c.Why) || strings.Contains(r.notes, says) != (c.Why != "") {
				t.Errorf("NOTES does not say %q:\n%s", c.Why, r.notes)
			}
			asked := mustRender(t, together(c.Values, at([]string{"controller", "networkPolicy", "enabled"}, true)))
			if readPolicy(t, asked.objects(t)) == nil || strings.Contains(asked.notes, says) {
				t.Errorf("there is no NetworkPolicy although the values ask for one:\n%s", asked.notes)
			}
		})
	}
}

// TestPeersOfMetrics checks the values that choose the peers for the port of probes and metrics.
func TestPeersOfMetrics(t *testing.T) {
	metricsFrom := func(peers ...any) values {
		return at([]string{"controller", "networkPolicy", "metricsFrom"},
			peers)
	}
	if p := mustPolicy(t, mustRender(t, metricsFrom()).objects(t)); len(p.inner) > 0 || p.open["TCP/10254"] {
		t.Errorf("without peers, everyone reaches %v, and some %v", sorted(p.open), sorted(p.inner))
	}
	everyone := at([]string{"controller", "networkPolicy", "ports"}, []any{values{"port": 10254.0, "protocol": "TCP"}})
	if p := mustPolicy(t, mustRender(t, everyone).objects(t)); !p.open["TCP/10254"] {
		t.Errorf("with the port among those for everyone, everyone reaches %v", sorted(p.open))
	}
	peer := values{"podSelector": values{"matchLabels": values{"app": "{{ .Release.Name }}"}}}
	monitor := values{"enabled": true, "serviceMonitor": values{"enabled": true, "namespace": "prom"}}
	r := mustRender(t, together(metricsFrom(peer), values{"controller": values{"metrics": monitor}}))
	want := values{"kind": "NetworkPolicy", "spec": values{"ingress": []any{values{"from": []any{
		values{"podSelector": values{"matchLabels": values{"app": releaseName}}},
		values{"namespaceSelector": values{"matchLabels": values{"kubernetes.io/metadata.name": "prom"}}},
	}}}}}
	if !slices.ContainsFunc(r.objects(t), func(object values) bool { return has(object, want) }) {
		t.Errorf("there is no object with %v", want)
	}
	if !strings.Contains(r.notes, "controller.networkPolicy.metricsFrom") {
		t.Errorf("NOTES does not say who reaches the metrics:\n%s", r.notes)
	}
}

// TestPeersOfWebhook checks the values that choose the peers for the port of the webhook.
func TestPeersOfWebhook(t *testing.T) {
	const port = "TCP/8443"
	from := func(peers ...any) values { return at([]string{"controller", "networkPolicy", "webhookFrom"}, peers) }
	block := values{"ipBlock": values{"cidr": "192.0.2.0/28"}}
	everyone := at([]string{"controller", "networkPolicy", "ports"}, []any{values{"port": 8443.0, "protocol": "TCP"}})
	off := at([]string{"controller", "admissionWebhooks", "enabled"}, false)
	for _, c := range []struct {
		name        string
		values      values
		open, inner bool
	}{
		{"default", values{}, true, false},
		{"some", from(block), false, true},
		{"none", from(), false, false},
		{"also among the ports for everyone", together(from(block), everyone), true, false},
		{"no webhook", together(from(block), off), false, false},
	} {
		p := mustPolicy(t, mustRender(t, c.values).objects(t))
		if p.open[port] != c.open || p.inner[port] != c.inner {
			t.Errorf("%s: everyone reaches %v, and some %v", c.name, sorted(p.open), sorted(p.inner))
		}
	}
}
