package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	replicasDeployment = "edge-k8singress-controller"
	replicaCount       = 2
	// foreignAddress is the address that another controller writes.
	foreignAddress = "203.0.113.66"
)

// edgePods are the pods of the chart.
type edgePods struct {
	*cluster
	// service is the address for clients. published is the address that the pods write to the status of Ingresses.
	service, published string
}

// TestReplicas ends, kills and restarts pods of the chart while another controller writes to the same status. It checks
// that no request fails, and that no Ingress is ever without an address.
func TestReplicas(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 2)
	c.ingress("shop", "web", c.withOwnClass)
	c.install("edge", ownChart, "replicas-values.yaml")
	service := c.serviceNamed(replicasDeployment)
	all := &edgePods{c, net.JoinHostPort(service.Spec.ClusterIP, "80"), service.Status.LoadBalancer.Ingress[0].IP}
	c.awaitStatus(all.service, http.StatusOK)
	c.awaitAddress("shop", all.published)
	c.watchAddresses("shop")
	for _, step := range []struct {
		name string
		run  func(*edgePods)
	}{
		{"rolling update", (*edgePods).rollingUpdate},
		{"leader killed", func(r *edgePods) { r.loseLeader("killed", r.killProcess) }},
		{"leader lost with its node", func(r *edgePods) { r.loseLeader("lost", r.forget) }},
		{"another controller", (*edgePods).anotherController},
		{"all stopped", (*edgePods).stopAll},
		{"without status", (*edgePods).withoutStatus},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.run(&edgePods{c.in(t), all.service, all.published}) }) {
			c.logControllers()
			return
		}
	}
}

// rollingUpdate ends the leader, and then replaces all pods, during short and slow requests.
func (r *edgePods) rollingUpdate() {
	b := r.startBarrage(r.service, r.host("shop"))
	b.awaitSlow(r.cluster)
	r.drainLeader(b)
	r.awaitReady()
	r.kubectl(r.Context(), "rollout", "restart", "deployment/"+replicasDeployment, "--namespace", r.namespace)
	r.kubectl(r.Context(), "rollout", "status", "deployment/"+replicasDeployment, "--namespace", r.namespace,
		"--timeout=3m")
	b.awaitSlow(r.cluster)
	b.finish(r.cluster)
	r.checkWrites("updated")
}

// drainLeader deletes the leader. It checks that the pod is no longer ready but still serves, and that another replica
// becomes the leader.
func (r *edgePods) drainLeader(b *barrage) {
	r.Helper()
	holder := r.holder()
	leader, _, _ := strings.Cut(holder, "_")
	pod, err := r.CoreV1().Pods(r.namespace).Get(r.Context(), leader, metav1.GetOptions{})
	r.must(err)
	address := net.JoinHostPort(pod.Status.PodIP, "80")
	b.slowAt(r.cluster, address)
	r.must(r.CoreV1().Pods(r.namespace).Delete(r.Context(), leader, metav1.DeleteOptions{}))
	r.await("/readyz of the pod that ends is 503", func() error {
		answer, err := once(r.Context(), net.JoinHostPort(pod.Status.PodIP, "10254"), "http://health/readyz")
		if err == nil && answer.code != http.StatusServiceUnavailable {
			err = fmt.Errorf("it is %d", answer.code)
		}
		return err
	})
	if answer, err := once(r.Context(), address, "http://"+r.host("shop")+"/"); err != nil ||
		answer.code != http.StatusOK {
		r.Errorf("a pod that ends answers %d, %v", answer.code, err)
	}
	r.awaitHolderAfter(holder)
}

// loseLeader ends the leader without a grace period, and checks that another replica serves in the meantime, acquires
// the Lease and writes.
func (r *edgePods) loseLeader(how string, end func(pod string)) {
	pods := r.awaitReady()
	holder := r.holder()
	leader, _, _ := strings.Cut(holder, "_")
	var others []*load
	for i := range pods {
		if pods[i].Name != leader {
			address := net.JoinHostPort(pods[i].Status.PodIP, "80")
			others = append(others, r.startLoad(&harness.Caddy{Options: harness.Options{HTTP: address}},
				r.host("shop")))
		}
	}
	if len(others) != replicaCount-1 {
		r.Fatalf("%d pods do not lead, beside %s", len(others), holder)
	}
	end(leader)
	r.awaitHolderAfter(holder)
	r.checkWrites(how)
	for _, l := range others {
		l.check(r.cluster)
	}
	r.awaitReady()
	r.awaitStatus(r.service, http.StatusOK)
}

func (r *edgePods) killProcess(pod string) { r.must(r.inside.KillPod(pod)) }

// forget deletes a pod immediately, like the pods of a lost node.
func (r *edgePods) forget(pod string) {
	r.must(r.CoreV1().Pods(r.namespace).Delete(r.Context(), pod,
		metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
}

// anotherController writes another address to an Ingress. It checks that the next change of any object restores our
// address.
func (r *edgePods) anotherController() {
	for round := range 3 {
		r.writeForeign("shop")
		r.checkWrites(fmt.Sprintf("beside-%d", round))
		r.awaitAddress("shop", r.published)
	}
}

// stopAll deletes all pods, and checks that the address stays.
func (r *edgePods) stopAll() {
	r.scale(replicasDeployment, 0)
	r.awaitControllers(0)
	r.awaitAddress("shop", r.published)
	r.scale(replicasDeployment, replicaCount)
	r.awaitReady()
}

// withoutStatus upgrades to --update-status=false, and checks that Events are still written and that the address of the
// other controller stays.
func (r *edgePods) withoutStatus() {
	r.helm("upgrade", "edge", ownChart, "--wait", "--timeout=3m", "--values", r.values("replicas-values.yaml"),
		"--set-string", "controller.extraArgs.update-status=false")
	r.awaitReady()
	r.writeForeign("shop")
	r.ingress("absent", "absent", r.withOwnClass)
	r.awaitFor(takeover, "a Warning Event on Ingress absent", func() error {
		if len(r.warnings("absent")) == 0 {
			return errors.New("the Ingress has no Warning Event")
		}
		return nil
	})
	r.awaitAddress("shop", foreignAddress)
	object, err := r.NetworkingV1().Ingresses(r.namespace).Get(r.Context(), "absent", metav1.GetOptions{})
	r.must(err)
	if list := object.Status.LoadBalancer.Ingress; len(list) > 0 {
		r.Errorf("Ingress absent has the addresses %v", list)
	}
}

// writeForeign replaces all addresses, like ingress-nginx.
func (c *cluster) writeForeign(ingress string) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"status":{"loadBalancer":{"ingress":[{"ip":%q}]}}}`, foreignAddress)
	_, err := c.NetworkingV1().Ingresses(c.namespace).Patch(c.Context(), ingress, types.MergePatchType, patch,
		metav1.PatchOptions{}, "status")
	c.must(err)
}

// checkWrites creates an Ingress, and waits until its status is written.
func (r *edgePods) checkWrites(ingress string) {
	r.Helper()
	r.ingress(ingress, "web", r.withOwnClass)
	r.awaitAddress(ingress, r.published)
}

// holder returns the holder of the Lease: the name of a pod, an underscore, and an ID of the process.
func (r *edgePods) holder() string {
	r.Helper()
	return r.awaitHolderAfter("")
}

// awaitHolderAfter waits until a process other than before holds the Lease.
func (r *edgePods) awaitHolderAfter(before string) (now string) {
	r.Helper()
	r.awaitFor(takeover, fmt.Sprintf("a leader after %q", before), func() error {
		lease, err := r.CoordinationV1().Leases(r.namespace).Get(r.Context(), "k8singress-edge-k8singress-leader",
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		if now = ptr.Deref(lease.Spec.HolderIdentity, ""); now == "" || now == before {
			return fmt.Errorf("the Lease is held by %q", now)
		}
		return nil
	})
	return now
}

func (r *edgePods) awaitReady() []corev1.Pod {
	r.Helper()
	return r.awaitControllers(replicaCount)
}

// awaitControllers waits until the controller has exactly this number of pods, all of them are ready, and no pod is
// terminating.
func (r *edgePods) awaitControllers(count int) (pods []corev1.Pod) {
	r.Helper()
	r.awaitFor(installing, fmt.Sprintf("%d pods of the controller", count), func() error {
		list, err := r.CoreV1().Pods(r.namespace).List(r.Context(),
			metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; pod.DeletionTimestamp != nil || !isReady(pod) {
				return fmt.Errorf("%s is not ready, or about to end", pod.Name)
			}
		}
		if pods = list.Items; len(pods) != count {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	return pods
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// watchAddresses fails the test if an update removes the last address of an Ingress while the test runs.
func (c *cluster) watchAddresses(ingress string) {
	c.Helper()
	ingresses := c.NetworkingV1().Ingresses(c.namespace)
	object, err := ingresses.Get(c.Context(), ingress, metav1.GetOptions{})
	c.must(err)
	watcher, err := ingresses.Watch(context.WithoutCancel(c.Context()), metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", ingress).String(),
		ResourceVersion: object.ResourceVersion,
	})
	c.must(err)
	var stopped atomic.Bool
	var updates int
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range watcher.ResultChan() {
			if stopped.Load() {
				return
			}
			updates++
			if object, ok := event.Object.(*networkingv1.Ingress); event.Type != watch.Modified || !ok {
				c.Errorf("the watch says %s: %v", event.Type, event.Object)
			} else if len(object.Status.LoadBalancer.Ingress) == 0 {
				c.Errorf("an update takes the last address: %v", object.ManagedFields)
			}
		}
		if !stopped.Load() {
			c.Error("the watch has ended too early")
		}
	})
	c.Cleanup(func() {
		stopped.Store(true)
		watcher.Stop()
		watching.Wait()
		c.Logf("%d updates of Ingress %s, each with an address", updates, ingress)
	})
}
