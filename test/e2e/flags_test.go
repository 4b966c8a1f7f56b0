package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestDeploymentOfIngressNginx runs a Deployment as ingress-nginx has it, with another image: it takes the command line as it is, serves,
// reads its ConfigMap, and writes the status, as the holder of a Lease that ingress-nginx does not use.
func TestDeploymentOfIngressNginx(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.ingress("shop", "web")
	pod := c.deployNginx("testdata/ingress-nginx.yaml")
	c.await("an answer through the controller", func() error {
		r, err := once(t.Context(), net.JoinHostPort(pod().Status.PodIP, "8000"), "http://"+c.host("shop")+"/")
		if err == nil && (r.code != http.StatusOK || !strings.HasPrefix(r.pod, "web-")) {
			return fmt.Errorf("%d from %q", r.code, r.pod)
		}
		return err
	})
	c.awaitAddress("shop", "203.0.113.77")
	if _, err := c.CoordinationV1().Leases(own).Get(t.Context(), "k8singress-ingress-nginx-leader", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	log, err := c.CoreV1().Pods(own).GetLogs(pod().Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), "--validating-webhook: it has no effect: there is no webhook yet") {
		t.Errorf("the log does not name the flag without effect: %v\n%s", err, log)
	}
}

// deployNginx creates a Deployment of the controller, which goes with the test, and waits until its one pod is ready. It returns what
// reads the pod.
func (c *cluster) deployNginx(file string) (pod func() *corev1.Pod) {
	c.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	deployment := new(appsv1.Deployment)
	c.must(yaml.UnmarshalStrict([]byte(strings.ReplaceAll(string(text), "=NAMESPACE", "="+c.namespace)), deployment))
	deployments := c.AppsV1().Deployments(own)
	_, err = deployments.Create(c.Context(), deployment, metav1.CreateOptions{})
	c.must(err)
	c.Cleanup(func() {
		if log, err := c.CoreV1().Pods(own).GetLogs(pod().Name, &corev1.PodLogOptions{}).DoRaw(context.Background()); c.Failed() {
			c.Logf("log of the controller, its end: %v\n%s", err, log[max(0, len(log)-6000):])
		}
		if err := deployments.Delete(context.Background(), deployment.Name, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	})
	pod = func() *corev1.Pod {
		list, err := c.CoreV1().Pods(own).List(context.Background(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=ingress-nginx"})
		c.must(err)
		if len(list.Items) != 1 {
			return new(corev1.Pod)
		}
		return &list.Items[0]
	}
	c.await("the controller is ready", func() error {
		for _, condition := range pod().Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its pod is %s", pod().Status.Phase)
	})
	return pod
}
