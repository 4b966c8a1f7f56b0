package chart

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// TestVersions renders each shape for each version of Kubernetes, and checks that the objects are the same and that all
// versions have their APIs.
func TestVersions(t *testing.T) {
	for _, s := range variants(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			first := mustRender(t, s.with)
			for _, object := range first.objects(t) {
				checkAPI(t, decode(t, object))
			}
			for minor := oldestMinor; minor < newestMinor; minor++ {
				r, err := render(s.with, install{version: fmt.Sprintf("v1.%d.0", minor)})
				if err != nil {
					t.Fatal(err)
				}
				if r.manifest != first.manifest {
					t.Errorf("1.%d is told something else", minor)
				}
			}
		})
	}
}

// TestOlderVersions checks that the chart is rejected for versions of Kubernetes that are not supported.
func TestOlderVersions(t *testing.T) {
	for name, render := range map[string]func(values, install) (rendered, error){"Helm 4": render,
		"Helm 3": renderHelm3} {
		if _, err := render(nil, install{version: fmt.Sprintf("v1.%d.17", oldestMinor-1)}); err == nil {
			t.Errorf("%s takes it", name)
		}
	}
}

// checkAPI checks that all supported versions have the API of an object, from the versions in which Kubernetes has
// introduced and removed it.
func checkAPI(t *testing.T, object runtime.Object) {
	t.Helper()
	if object == nil {
		return
	}
	kind := object.GetObjectKind().GroupVersionKind()
	since, ok := object.(interface{ APILifecycleIntroduced() (major, minor int) })
	if !ok {
		t.Fatalf("Kubernetes does not say since when there is %v", kind)
	}
	if major, minor := since.APILifecycleIntroduced(); major != 1 || minor > oldestMinor {
		t.Errorf("1.%d has no %v: it came in %d.%d", oldestMinor, kind, major, minor)
	}
	if until, ok := object.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		if major, minor := until.APILifecycleRemoved(); major != 1 || minor <= newestMinor {
			t.Errorf("1.%d has no %v: it went in %d.%d", newestMinor, kind, major, minor)
		}
	}
}
