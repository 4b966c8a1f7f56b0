package main

import (
	"strings"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// TestTenantsObjects checks that Kubernetes accepts the objects of each edit, and that each edit differs from the one
// before.
func TestTenantsObjects(t *testing.T) {
	for name, objects := range map[string]func(int) string{
		"hostWide": hostWide, "ciphers": ciphers, "large": large, "garbage": garbage, "names": names,
	} {
		if objects(2) == objects(3) {
			t.Errorf("%s: an edit changes nothing", name)
		}
		ingresses := 0
		for one := range strings.SplitSeq(objects(2), "---\n") {
			if !strings.Contains(one, "kind: Ingress\n") {
				continue
			}
			var ingress networkingv1.Ingress
			if err := yaml.UnmarshalStrict([]byte(one), &ingress); err != nil || ingress.Namespace != "another" ||
				len(ingress.Spec.Rules) == 0 {
				t.Errorf("%s: %v in %s", name, err, one)
			}
			ingresses++
		}
		if ingresses == 0 {
			t.Errorf("%s has no Ingress", name)
		}
	}
}

// TestAttackBars checks that a slow round misses its bar, and that each failure does.
func TestAttackBars(t *testing.T) {
	calm := []figures{{p99: time.Millisecond}, {p99: time.Millisecond}}
	a := &attack{name: "it", calm: calm, beside: []figures{{p99: 2 * time.Millisecond}, {p99: 2 * time.Millisecond}},
		failed: 1, change: time.Second}
	bars := attackBars([]*attack{a})
	if len(bars) != 3 || bars[0].Met != "no" || bars[1].Met != "no" || bars[2].Met != "yes" {
		t.Errorf("the bars are %+v", bars)
	}
}
