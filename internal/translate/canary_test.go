package translate_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// onHostsOf returns an Ingress with a path "/" on each host, and the Service for that host.
func onHostsOf(name string, second int64, services map[string]string, annotations ...string) *networkingv1.Ingress {
	prefix := networkingv1.PathTypePrefix
	o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, CreationTimestamp: metav1.Unix(second, 0), Annotations: map[string]string{},
	}}
	for _, a := range annotations {
		o.Annotations["nginx.ingress.kubernetes.io/"+a] = map[string]string{"canary": "true", "canary-weight": "50",
			"affinity": "cookie"}[a]
	}
	for _, host := range []string{"a.example", "b.example"} {
		if service, ok := services[host]; ok {
			o.Spec.Rules = append(o.Spec.Rules,
				networkingv1.IngressRule{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{
					HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{
						Path: "/", PathType: &prefix, Backend: networkingv1.IngressBackend{
							Service: &networkingv1.IngressServiceBackend{Name: service,
								Port: networkingv1.ServiceBackendPort{Number: 80}},
						},
					}}},
				}})
		}
	}
	return o
}

// cookies returns, by Service, the origins that set a session cookie.
func cookies(config *ir.Config) map[string]string {
	all := map[string]string{}
	for _, b := range config.Backends {
		if c := b.LoadBalancing.SessionCookie; c != nil {
			all[b.Service] = fmt.Sprint(c.Origins)
		}
	}
	return all
}

// TestCanaryHasTheSessionOfItsMain checks a canary with two hosts. On each host, its backend must use the session
// cookie of the host's main Ingress, and only the routes of that main Ingress may set the cookie. A change of a main
// Ingress must take effect on the canary.
func TestCanaryHasTheSessionOfItsMain(t *testing.T) {
	store := snapshot.NewStore()
	for _, name := range []string{"one", "two", "next-one", "next-two", "next"} {
		store.Set(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
	}
	one, two := map[string]string{"a.example": "one"}, map[string]string{"b.example": "two"}
	store.Set(onHostsOf("one", 1, one, "affinity"))
	store.Set(onHostsOf("two", 2, two))
	store.Set(onHostsOf("canary", 3, map[string]string{"a.example": "next-one", "b.example": "next-two"}, "canary",
		"canary-weight"))
	o := translate.Options{Ingress: ingress.Options{WatchWithoutClass: true}}
	translator := translate.New()
	const both = "[Ingress/shop/one Ingress/shop/two]"
	for _, step := range []struct {
		name   string
		change *networkingv1.Ingress
		want   map[string]string
	}{
		{
			"one has a session", onHostsOf("one", 1, one, "affinity"),
			map[string]string{"one": "[Ingress/shop/one]", "next-one": "[Ingress/shop/one]"},
		},
		{"none has", onHostsOf("one", 1, one), map[string]string{}},
		{
			"the other one has", onHostsOf("two", 2, two, "affinity"),
			map[string]string{"two": "[Ingress/shop/two]", "next-two": "[Ingress/shop/two]"},
		},
		{
			"one backend for both", onHostsOf("canary", 3, map[string]string{"a.example": "next", "b.example": "next"},
				"canary", "canary-weight"),
			map[string]string{"two": "[Ingress/shop/two]", "next": "[Ingress/shop/two]"},
		},
		{
			"both have", onHostsOf("one", 1, one, "affinity"),
			map[string]string{"one": "[Ingress/shop/one]", "two": "[Ingress/shop/two]", "next": both},
		},
	} {
		store.Set(step.change)
		s := store.Take()
		config, _ := translator.Translate(s, o)
		if diff := cmp.Diff(step.want, cookies(config)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", step.name, diff)
		}
		if whole, _ := translate.Translate(s, o); cmp.Diff(cookies(whole), cookies(config)) != "" {
			t.Errorf("%s: a whole translation says %v", step.name, cookies(whole))
		}
	}
}
