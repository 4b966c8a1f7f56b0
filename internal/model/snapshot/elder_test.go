package snapshot_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/snapshot"
)

// TestElder checks that an object is not called older if its age is unknown or the same.
func TestElder(t *testing.T) {
	service := func(created int64) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}}
		if created > 0 {
			s.CreationTimestamp = metav1.NewTime(time.Unix(created, 0))
		}
		return s
	}
	for _, test := range []struct {
		winner, other int64
		want, unnamed string
	}{
		{1, 2, "the older Service/shop/db", "an older Service of theirs"},
		{
			2, 2,
			"Service/shop/db (which is treated as older because of its name: both were created in the same second)",
			"a Service of theirs (which is treated as older because of its name: both were created in the same second)",
		},
		{
			0, 0, "Service/shop/db (which is treated as older because of its name: neither has a creationTimestamp)",
			"a Service of theirs (which is treated as older because of its name: neither has a creationTimestamp)",
		},
		{
			0, 1, "Service/shop/db (which has no creationTimestamp, and is treated as older)",
			"a Service of theirs (which has no creationTimestamp, and is treated as older)",
		},
	} {
		winner, other := service(test.winner), service(test.other)
		if got := snapshot.Elder(winner, other); got != test.want {
			t.Errorf("%d before %d: %q", test.winner, test.other, got)
		}
		if got := snapshot.ElderOfKind(winner, other, " of theirs"); got != test.unnamed {
			t.Errorf("%d before %d: %q", test.winner, test.other, got)
		}
	}
}
