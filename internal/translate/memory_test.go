package translate_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
)

// TestGoneIngressesLeaveNoMemory checks that Ingresses that are gone leave no memory in the store and the translator.
// Their hosts have aliases and regular expressions, and need certificates from issuers.
func TestGoneIngressesLeaveNoMemory(t *testing.T) {
	store, translator := fill(1), translate.New()
	o := scarce
	o.Views = true
	translate := func() { translator.Translate(store.Take(), o) }
	translate()
	objects := func(n int, use func(kinds.Object)) {
		for i := 1; i <= n; i++ {
			object := numbered(i, "/a/(.*)")
			object.Namespace = fmt.Sprint("n", i%100)
			object.Annotations = map[string]string{
				"nginx.ingress.kubernetes.io/server-alias":   fmt.Sprintf("alias%d.example.org", i),
				"nginx.ingress.kubernetes.io/use-regex":      "true",
				"nginx.ingress.kubernetes.io/rewrite-target": "/$1",
			}
			use(object)
			use(&corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: fmt.Sprint("s", i)},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
			})
		}
	}
	fixture.ReleasesMemory(t, 2000, func(n int) {
		objects(n, store.Set)
		translate()
	}, func(n int) {
		objects(n, store.Delete)
		translate()
	})
	runtime.KeepAlive(translator)
	runtime.KeepAlive(store)
}
