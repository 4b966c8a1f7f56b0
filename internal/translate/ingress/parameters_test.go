package ingress_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// TestDefaultsOfAClass checks that the defaults of a class apply to each Ingress of the class, however the Ingress
// names the class, and that annotations take precedence over them.
func TestDefaultsOfAClass(t *testing.T) {
	configMap := ir.Ref{Kind: kinds.ConfigMap, Namespace: "shop", Name: "class"}
	o := everything
	o.Defaults = annotations.Settings{RewriteTarget: "/everybody"}
	o.Classes = map[string]ingress.Class{"nginx": {ConfigMap: configMap,
		Defaults: annotations.Settings{RewriteTarget: "/class"}}}
	classes := []kinds.Object{class("nginx", ourController, "true"), class("other", ourController, "")}
	for _, test := range []struct {
		name        string
		field       string
		annotations map[string]string
		classes     []kinds.Object
		want        string
	}{
		{"field", "nginx", nil, classes, "/class"},
		{"annotation", "", map[string]string{classKey: "nginx"}, classes, "/class"},
		{"default class", "", nil, classes, "/class"},
		{"another class of ours", "other", nil, classes, "/everybody"},
		{"no class", "", nil, nil, "/everybody"},
		{"the Ingress itself", "nginx", map[string]string{annotations.Prefix + "rewrite-target": "/own"},
			classes, "/own"},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := object("web", "a.example", prefix("/", backend("web", 80)))
			object.Annotations = test.annotations
			if test.field != "" {
				object.Spec.IngressClassName = &test.field
			}
			r := ingress.Translate(take(append(test.classes, service("web", corev1.ServicePort{Port: 80}))...), object,
				o)
			if got := r.Paths["a.example"][0].Filters[0]; got != (ir.URLRewrite{Target: test.want}) {
				t.Errorf("the filter is %v, want %s", got, test.want)
			}
			if of := test.want != "/everybody"; slices.Contains(r.Refs, configMap) != of {
				t.Errorf("whether a change of the ConfigMap matters is %v", !of)
			}
		})
	}
}
