package streams

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/backends"
)

// TestPanicInAnEntryIsIsolated checks that a panic while reading one of three entries does not affect the others.
func TestPanicInAnEntryIsIsolated(t *testing.T) {
	store := snapshot.NewStore()
	store.Set(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "tcp"},
		Data:       map[string]string{"1": "shop/web:80", "2": "shop/bad:80", "3": "shop/web:80"},
	})
	web := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	web.Spec.Ports = []corev1.ServicePort{{Port: 80}}
	store.Set(web)
	r := newReading(store.Take(), Options{TCP: ir.Name{Namespace: "shop", Name: "tcp"}})
	r.find = func(s *snapshot.Snapshot, of ir.Ref, port string, p ir.Protocol, o backends.Options) (*ir.Backend,
		*report.Problem) {
		if of.Name == "bad" {
			panic("out of range")
		}
		return backends.Find(s, of, port, p, o)
	}
	got := r.translate()
	if len(got.Routes) != 2 || got.Routes[0].Port != 1 || got.Routes[1].Port != 3 {
		t.Errorf("the routes are %+v", got.Routes)
	}
	if p := got.Verdicts[0].Problems; len(p) != 1 || p[0].Reason != report.Quarantined || p[0].Field != "data[2]" {
		t.Errorf("the problems are %+v", p)
	}
}
