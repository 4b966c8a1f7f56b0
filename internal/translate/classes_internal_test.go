package translate

import (
	"fmt"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/ingress"
)

// TestGoneClassesAreForgotten checks that IngressClasses that are gone leave nothing in the cache of parents.
func TestGoneClassesAreForgotten(t *testing.T) {
	const controller = "example.com/edge"
	store, translator := snapshot.NewStore(), New()
	translate := func() {
		translator.Translate(store.Take(), Options{Ingress: ingress.Options{ControllerName: controller}})
	}
	translate()
	for i := range 20 {
		class := &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("class-", i)},
			Spec:       networkingv1.IngressClassSpec{Controller: controller},
		}
		object := onHosts("web", "a.example")
		object.Spec.IngressClassName = &class.Name
		store.Set(class)
		store.Set(object)
		if translate(); translator.classes.Len() != 1 {
			t.Fatalf("there are %d classes, want 1", translator.classes.Len())
		}
		store.Delete(class)
		if translate(); translator.classes.Len() != 0 {
			t.Fatalf("%d classes are left", translator.classes.Len())
		}
	}
}
