package storage

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestGoneLocksLeaveNoMemory checks that deleted Leases leave no memory in the cache.
func TestGoneLocksLeaveNoMemory(t *testing.T) {
	c := new(leaseCache)
	each := func(n int, do func(any)) {
		for i := range n {
			do(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("lease-", i)}})
		}
	}
	fixture.ReleasesMemory(t, 10_000, func(n int) {
		each(n, func(lease any) { c.OnAdd(lease, true) })
	}, func(n int) { each(n, c.OnDelete) })
	runtime.KeepAlive(c)
}

// TestDeletionsLeaveNoMemory checks that Secrets that this process has deleted leave no memory in the cache after the
// watch has reported their deletion.
func TestDeletionsLeaveNoMemory(t *testing.T) {
	c := newSecretCache(zap.NewNop(), func([]string) {})
	version := 0
	each := func(n int, do func(*corev1.Secret)) {
		version++
		for i := range n {
			do(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprint("secret-", i), ResourceVersion: strconv.Itoa(version),
			}})
		}
	}
	fixture.ReleasesMemory(t, 10_000, func(n int) { each(n, c.onGone) }, func(n int) {
		each(n, func(secret *corev1.Secret) {
			if err := c.Delete(secret); err != nil {
				t.Fatal(err)
			}
		})
	})
	if n := c.gone.Len(); n > 0 {
		t.Errorf("%d deletions are left", n)
	}
	runtime.KeepAlive(c)
}
