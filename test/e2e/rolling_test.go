package e2e

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/k8singress/k8singress/test/harness"
)

// drainSeconds is the time for which a pod of the rolling update keeps serving: the duration of the slowest request,
// and the grace period.
const drainSeconds = 10 + graceSeconds

// TestRollingUpdate replaces all pods of a Deployment during requests, some of which take longer than the update. It
// checks that a terminating pod gets no new requests and completes its old ones.
func TestRollingUpdate(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 3, func(spec *corev1.PodSpec) { spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds = drainSeconds })
	c.ingress("web", "web")
	c.awaitEndpoints("web", 3, 0)
	caddy := c.caddy(c.options(0))
	c.awaitPods(caddy, c.host("web"), 3)
	before := c.pods()

	b := c.startBarrage(caddy.HTTP, c.host("web"))
	b.awaitSlow(c)
	c.update("web")
	c.awaitUpdated("web", 3)
	b.awaitSlow(c)
	c.checkAnsweredBy(caddy, c.host("web"), before)
	// Wait until the old pods are gone. Their slow requests end earlier.
	c.awaitEndpoints("web", 3, 0)
	b.finish(c)
	c.checkNoReload(caddy)
}

// pods returns the names of all pods of the namespace.
func (c *cluster) pods() map[string]bool {
	c.Helper()
	list, err := c.CoreV1().Pods(c.namespace).List(c.Context(), metav1.ListOptions{})
	c.must(err)
	names := map[string]bool{}
	for _, pod := range list.Items {
		names[pod.Name] = true
	}
	return names
}

// update changes the pod template of a Deployment.
func (c *cluster) update(deployment string) {
	c.Helper()
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	_, err := c.AppsV1().Deployments(c.namespace).Patch(c.Context(), deployment, types.MergePatchType, patch,
		metav1.PatchOptions{})
	c.must(err)
}

// awaitUpdated waits like kubectl rollout status.
func (c *cluster) awaitUpdated(name string, replicas int32) {
	c.Helper()
	c.awaitFor(installing, "rolling update of "+name, func() error {
		d, err := c.AppsV1().Deployments(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.UpdatedReplicas != replicas || s.Replicas != replicas ||
			s.AvailableReplicas != replicas {
			return fmt.Errorf("%d updated and %d available of %d", s.UpdatedReplicas, s.AvailableReplicas, s.Replicas)
		}
		return nil
	})
}

// checkAnsweredBy checks that the old pods, which still run, get no new requests.
func (c *cluster) checkAnsweredBy(caddy *harness.Caddy, host string, old map[string]bool) {
	c.Helper()
	c.await("only new pods answer", func() error {
		for range 60 {
			r, err := once(c.Context(), caddy.HTTP, "http://"+host+"/")
			if err != nil {
				return err
			}
			if r.code != http.StatusOK || old[r.pod] {
				return fmt.Errorf("answered %d by pod %q", r.code, r.pod)
			}
		}
		return nil
	})
	left := 0
	for name := range c.pods() {
		if old[name] {
			left++
		}
	}
	if left == 0 {
		c.Error("no old pod runs any more, so that it shows nothing that they get no requests")
	}
}
