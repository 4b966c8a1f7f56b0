package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file tests the nodes of the testbed: the network, ports, labels and taints of each node.

const masterRole = "node-role.kubernetes.io/master"

// TestHostNetwork checks that two pods in the networks of their nodes can use the same port, and that each can be
// reached at its node and both through a Service.
func TestHostNetwork(t *testing.T) {
	c := newCluster(t)
	pods := c.daemons("edge", func(spec *corev1.PodSpec) {
		spec.HostNetwork = true
		spec.Containers[0].Args = []string{"-http", ":80", "-https", ":443"}
		spec.Containers[0].Ports[0].ContainerPort = 80
	})
	for i := range pods {
		address := c.internalIP(pods[i].Spec.NodeName)
		if status := pods[i].Status; status.PodIP != address || status.HostIP != address {
			t.Errorf("%s has %s on a host %s, and its node has %s", pods[i].Name, status.PodIP, status.HostIP, address)
		}
		c.awaitAnswerOf(pods[i].Name, address+":80")
	}
	c.service("edge", "edge")
	patch := []byte(`{"spec":{"type":"LoadBalancer"}}`)
	_, err := c.CoreV1().Services(c.namespace).Patch(t.Context(), "edge", types.MergePatchType, patch,
		metav1.PatchOptions{})
	c.must(err)
	service := c.serviceNamed("edge")
	c.awaitAnswerOf("edge-", service.Spec.ClusterIP+":80")
	c.awaitAnswerOf("edge-", service.Status.LoadBalancer.Ingress[0].IP+":80")
}

// TestHostPort checks that host ports lead to the pods on their nodes while these pods exist.
func TestHostPort(t *testing.T) {
	c := newCluster(t)
	pods := c.daemons("ported", func(spec *corev1.PodSpec) {
		spec.Containers[0].Ports = []corev1.ContainerPort{
			{Name: "http", ContainerPort: 8080, HostPort: 81},
			{Name: "stream", ContainerPort: 9000},
			{Name: "datagrams", ContainerPort: 9000, HostPort: 54, Protocol: corev1.ProtocolUDP},
		}
	})
	for i := range pods {
		address := c.internalIP(pods[i].Spec.NodeName)
		c.awaitAnswerOf(pods[i].Name, address+":81")
		c.awaitEchoAt("udp", address+":54")
	}
	c.must(c.AppsV1().DaemonSets(c.namespace).Delete(t.Context(), "ported", metav1.DeleteOptions{}))
	for i := range pods {
		c.awaitRefused(c.internalIP(pods[i].Spec.NodeName) + ":81")
	}

	address := c.internalIP("node-1")
	c.deploy("bound", 1, func(spec *corev1.PodSpec) {
		spec.NodeSelector = map[string]string{corev1.LabelHostname: "node-1"}
		spec.Containers[0].Ports = append(spec.Containers[0].Ports,
			corev1.ContainerPort{Name: "here", ContainerPort: 8080, HostPort: 81, HostIP: address},
			corev1.ContainerPort{Name: "loopback", ContainerPort: 8080, HostPort: 82, HostIP: "127.0.0.1"})
	})
	c.awaitAnswerOf("bound-", address+":81")
	c.awaitRefused(address + ":82")
}

// TestNodesKeepChanges checks that a test can change the labels, taints and addresses of a node, and that the scheduler
// uses them.
func TestNodesKeepChanges(t *testing.T) {
	c := newCluster(t)
	const node, external = "node-1", "203.0.113.9"
	c.makeMaster(node)
	c.addExternalIP(node, external)
	onMaster := func(spec *corev1.PodSpec) { spec.NodeSelector = map[string]string{masterRole: ""} }
	c.deploy("refused", 1, onMaster)
	c.deploy("tolerant", 1, onMaster, tolerateMaster)
	c.awaitEndpoints("tolerant", 1, 0)
	if on := c.podOf("tolerant").Spec.NodeName; on != node {
		t.Errorf("the pod that tolerates a master is on %s", on)
	}
	c.await("word that the other pod does not tolerate the taint", func() error {
		conditions := c.podOf("refused").Status.Conditions
		for _, condition := range conditions {
			if condition.Reason == corev1.PodReasonUnschedulable &&
				strings.Contains(condition.Message, "untolerated taint") {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %+v", conditions)
	})
	if got := c.addressOf(node, corev1.NodeExternalIP); got != external {
		t.Errorf("the external address of %s is %q by now", node, got)
	}
}

func tolerateMaster(spec *corev1.PodSpec) {
	spec.Tolerations = []corev1.Toleration{{Key: masterRole, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoSchedule}}
}

// daemons creates a DaemonSet of echo. It waits until the pods are ready, and returns one pod for each node.
func (c *cluster) daemons(name string, change func(*corev1.PodSpec)) []corev1.Pod {
	c.Helper()
	labels := map[string]string{"app": name}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{echoContainer()}},
		},
	}}
	change(&set.Spec.Template.Spec)
	sets := c.AppsV1().DaemonSets(c.namespace)
	_, err := sets.Create(c.Context(), set, metav1.CreateOptions{})
	c.must(err)
	nodes, err := c.CoreV1().Nodes().List(c.Context(), metav1.ListOptions{})
	c.must(err)
	c.await("ready pods of "+name+" on all nodes", func() error {
		set, err := sets.Get(c.Context(), name, metav1.GetOptions{})
		if err == nil && int(set.Status.NumberReady) != len(nodes.Items) {
			err = fmt.Errorf("%d are ready on %d nodes", set.Status.NumberReady, len(nodes.Items))
		}
		return err
	})
	return c.podsOf(name)
}

func (c *cluster) podsOf(app string) []corev1.Pod {
	c.Helper()
	pods, err := c.CoreV1().Pods(c.namespace).List(c.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	c.must(err)
	return pods.Items
}

// podOf returns the only pod of a Deployment.
func (c *cluster) podOf(app string) *corev1.Pod {
	c.Helper()
	pods := c.podsOf(app)
	if len(pods) != 1 {
		c.Fatalf("there are %d pods of %s", len(pods), app)
	}
	return &pods[0]
}

func (c *cluster) internalIP(node string) string {
	c.Helper()
	return c.addressOf(node, corev1.NodeInternalIP)
}

func (c *cluster) addressOf(node string, kind corev1.NodeAddressType) string {
	c.Helper()
	object, err := c.CoreV1().Nodes().Get(c.Context(), node, metav1.GetOptions{})
	c.must(err)
	for _, address := range object.Status.Addresses {
		if address.Type == kind {
			return address.Address
		}
	}
	return ""
}

// makeMaster sets the label and the taint of a master node until the test ends.
func (c *cluster) makeMaster(node string) {
	c.Helper()
	c.patchNode(node, "",
		fmt.Sprintf(`{"metadata":{"labels":{%q:""}},"spec":{"taints":[{"key":%q,"effect":"NoSchedule"}]}}`,
			masterRole, masterRole),
		fmt.Sprintf(`{"metadata":{"labels":{%q:null}},"spec":{"taints":null}}`, masterRole))
}

// addExternalIP adds an address to a node until the test ends.
func (c *cluster) addExternalIP(node, ip string) {
	c.Helper()
	address := fmt.Sprintf(`{"type":"ExternalIP","address":%q`, ip)
	c.patchNode(node, "status", `{"status":{"addresses":[`+address+`}]}}`,
		`{"status":{"addresses":[`+address+`,"$patch":"delete"}]}}`)
}

func (c *cluster) patchNode(node, subresource, patch, undo string) {
	c.Helper()
	apply := func(ctx context.Context, patch string) error {
		_, err := c.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, subresource)
		return err
	}
	c.must(apply(c.Context(), patch))
	c.Cleanup(func() {
		if err := apply(context.Background(), undo); err != nil {
			c.Error(err)
		}
	})
}

// awaitAnswerOf waits until a pod whose name has this prefix responds to HTTP at an address.
func (c *cluster) awaitAnswerOf(pod, address string) {
	c.Helper()
	c.await("an answer of "+pod+" at "+address, func() error {
		r, err := once(c.Context(), address, "http://node.test/")
		if err == nil && !strings.HasPrefix(r.pod, pod) {
			err = fmt.Errorf("answered %d by pod %q", r.code, r.pod)
		}
		return err
	})
}

// awaitEchoAt waits until an address sends data back.
func (c *cluster) awaitEchoAt(network, address string) {
	c.Helper()
	c.await(network+" "+address+" echoes", func() error {
		conn, err := net.DialTimeout(network, address, time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		return (&echoed{}).send(conn)
	})
}

// awaitRefused waits until no process listens on a TCP address.
func (c *cluster) awaitRefused(address string) {
	c.Helper()
	c.await(address+" is closed", func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return errors.Join(errors.New("it is open"), conn.Close())
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
		return nil
	})
}
