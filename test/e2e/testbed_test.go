package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// This file tests the testbed: the properties of its kubelet and its network on which all other tests rely.

func TestUnreadyPodIsNotAnEndpoint(t *testing.T) {
	c := newCluster(t)
	c.deploy("unready", 1,
		func(spec *corev1.PodSpec) { spec.Containers[0].ReadinessProbe.HTTPGet.Path = "/status/503" })
	c.awaitEndpoints("unready", 0, 1)
	c.await("running pod that is not ready", func() error {
		pod, err := c.onlyPod()
		if err != nil {
			return err
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionFalse &&
				pod.Status.Phase == corev1.PodRunning {
				return nil
			}
		}
		return fmt.Errorf("its status is %+v", pod.Status)
	})
}

func TestLivenessRestarts(t *testing.T) {
	c := newCluster(t)
	c.deploy("sick", 1, func(spec *corev1.PodSpec) {
		container := &spec.Containers[0]
		container.Lifecycle = nil
		container.LivenessProbe = &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/status/500",
				Port: intstr.FromInt32(8080)}},
			PeriodSeconds: 1, FailureThreshold: 1, InitialDelaySeconds: 1,
		}
	})
	c.await("restart", func() error {
		pod, err := c.onlyPod()
		if err != nil {
			return err
		}
		for _, status := range pod.Status.ContainerStatuses {
			if status.RestartCount > 0 {
				return nil
			}
		}
		return errors.New("no restart yet")
	})
}

func TestClusterIPReachesPods(t *testing.T) {
	c := newCluster(t)
	c.deploy("served", 1)
	c.awaitEndpoints("served", 1, 0)
	service, err := c.CoreV1().Services(c.namespace).Get(t.Context(), "served", metav1.GetOptions{})
	c.must(err)
	pod, err := c.onlyPod()
	c.must(err)
	c.await("answer of the pod through the ClusterIP", func() error {
		r, err := once(t.Context(), service.Spec.ClusterIP+":80", "http://served.test/")
		if err == nil && (r.code != http.StatusOK || r.pod != pod.Name) {
			err = fmt.Errorf("answered %d, pod %q; want 200 from %s", r.code, r.pod, pod.Name)
		}
		return err
	})
}

func TestPodLogs(t *testing.T) {
	c := newCluster(t)
	c.deploy("logged", 1)
	c.awaitEndpoints("logged", 1, 0)
	pod, err := c.onlyPod()
	c.must(err)
	log, err := c.CoreV1().Pods(c.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
	if err != nil || !strings.Contains(string(log), "listening") {
		t.Fatalf("log %q, %v", log, err)
	}
}

func (c *cluster) onlyPod() (*corev1.Pod, error) {
	pods, err := c.CoreV1().Pods(c.namespace).List(c.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(pods.Items) != 1 {
		return nil, fmt.Errorf("there are %d pods", len(pods.Items))
	}
	return &pods.Items[0], nil
}
