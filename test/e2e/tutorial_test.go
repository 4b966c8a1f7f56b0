package e2e

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/k8singress/k8singress/test/harness"
)

// TestTutorialInstall installs the chart on the only master node, in the network of that node and without a Service,
// like tutorials for ingress-nginx without a load balancer.
func TestTutorialInstall(t *testing.T) {
	c := newCluster(t)
	const master, external = "node-0", "203.0.113.10"
	c.makeMaster(master)
	address := c.internalIP(master)
	c.deploy("web", 1)
	c.streamService("mongo", corev1.ProtocolTCP, 27017)
	c.streamService("dns", corev1.ProtocolUDP, 53)
	c.ingress("shop", "web", c.withOwnClass)
	notes := c.install("edge", ownChart, "tutorial-values.yaml")
	for _, says := range []string{"The values name an image of ingress-nginx", "so there are no Jobs"} {
		if !strings.Contains(notes, says) {
			t.Errorf("NOTES lacks %q:\n%s", says, notes)
		}
	}

	c.awaitCode(&harness.Caddy{Options: harness.Options{HTTP: address + ":80"}}, c.host("shop"), "/",
		http.StatusOK, "web-")
	c.awaitAddress("shop", address)
	c.addExternalIP(master, external)
	c.awaitAddress("shop", external)
	c.awaitEchoAt("tcp", address+":27017")
	c.awaitEchoAt("udp", address+":53")
	// This text comes from the pod of the default backend, not from the controller.
	if text := c.body(address+":80", "http://nobody.test/"); text != "default backend - 404" {
		t.Errorf("an unknown host gets %q", text)
	}
	c.awaitEventOn("ConfigMap", "edge-k8singress-controller", "UnknownKey", "client-max-body-size")
	c.checkAdminSocket()
}

// streamService creates a Service whose port leads to the echo port in the pods of web.
func (c *cluster) streamService(name string, protocol corev1.Protocol, port int32) {
	c.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports:    []corev1.ServicePort{{Port: port, Protocol: protocol, TargetPort: intstr.FromInt32(9000)}},
	}}
	_, err := c.CoreV1().Services(c.namespace).Create(c.Context(), service, metav1.CreateOptions{})
	c.must(err)
}

// checkAdminSocket queries the configuration of Caddy from the admin API, which can only be reached inside the
// controller's pod.
func (c *cluster) checkAdminSocket() {
	c.Helper()
	pods, err := c.CoreV1().Pods(c.namespace).List(c.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
	c.must(err)
	if len(pods.Items) != 1 {
		c.Fatalf("there are %d pods of the controller", len(pods.Items))
	}
	stdout, stderr, err := c.exec(execByWebSocket, pods.Items[0].Name, "", "caddy", "k8singress", "get", "/config/")
	if err != nil || !strings.Contains(stdout, `"k8singress"`) {
		c.Errorf("the admin API answers %.300q, %v: %s", stdout, err, stderr)
	}
}
