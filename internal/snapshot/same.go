package snapshot

import (
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/k8singress/k8singress/internal/kinds"
)

type pointer[T any] interface {
	*T
	kinds.Object
}

// same says whether two objects of one name mean the same.
func same[T any, P pointer[T]](a, b P) bool {
	if sameVersion(a, b) {
		return true
	}
	x, y := *a, *b
	meaning(P(&x))
	meaning(P(&y))
	return equality.Semantic.DeepEqual(&x, &y)
}

// sameVersion spares the comparison of objects that a source lists again.
func sameVersion(a, b kinds.Object) bool {
	version := a.GetResourceVersion()
	return version != "" && version == b.GetResourceVersion() && a.GetUID() == b.GetUID()
}

// meaning empties the fields of a shallow copy that do not count.
func meaning(o kinds.Object) {
	o.SetResourceVersion("")
	o.SetGeneration(0)
	o.SetManagedFields(nil)
	if ingress, ok := o.(*networkingv1.Ingress); ok {
		ingress.Status = networkingv1.IngressStatus{}
	}
}
