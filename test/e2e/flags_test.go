package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeploymentOfIngressNginx runs the manifests of the ingress-nginx chart with our image, with its rights and its
// webhook. It checks that an Ingress is served, that the webhook refuses a bad one, and that no request is lost when
// the pod is replaced.
func TestDeploymentOfIngressNginx(t *testing.T) {
	c := newCluster(t)
	service := c.runNginx("testdata/ingress-nginx.yaml", "ingress-nginx-leader")
	l := c.awaitServed(service)
	c.checkWebhook()
	c.update(service.Name)
	c.awaitUpdated(service.Name, 1)
	l.check(c)
	c.checkWebhook()
	t.Logf("%d requests", l.requests.Load())
}

// checkWebhook checks that the API server asks the webhook about Ingresses: a bad one is refused with the words of the
// controller, a good one is stored, and an Ingress of another class is not checked.
func (c *cluster) checkWebhook() {
	c.Helper()
	ingresses := c.NetworkingV1().Ingresses(c.namespace)
	create := func(name, value, class string) (err error) {
		ingress := &networkingv1.Ingress{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
				"nginx.ingress.kubernetes.io/proxy-body-size": value}},
			Spec: networkingv1.IngressSpec{IngressClassName: &class, DefaultBackend: &networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: "web",
					Port: networkingv1.ServiceBackendPort{Number: 80}}}},
		}
		// The API server may send a review over its connection to a pod that is just ending, and does not repeat it.
		c.await("a review of Ingress "+name, func() error {
			if _, err = ingresses.Create(c.Context(), ingress, metav1.CreateOptions{}); apierrors.IsInternalError(err) {
				return err
			}
			return nil
		})
		return err
	}
	err := create("refused", "a lot", c.namespace)
	if err == nil || !strings.Contains(err.Error(), "validate.nginx.ingress.kubernetes.io") ||
		!strings.Contains(err.Error(), "proxy-body-size") {
		c.Errorf("a bad Ingress gets %v", err)
	}
	for class, value := range map[string]string{c.namespace: "8m", c.namespace + "-other": "a lot"} {
		c.must(create("checked", value, class))
		c.must(ingresses.Delete(c.Context(), "checked", metav1.DeleteOptions{}))
	}
}

// TestDeploymentOf2020 runs a deployment from the time when classes were annotations. Its TCP ports are in the
// ConfigMap that its flags name.
func TestDeploymentOf2020(t *testing.T) {
	c := newCluster(t)
	service := c.runNginx("testdata/ingress-nginx-2020.yaml", "ingress-controller-leader",
		func(i *networkingv1.Ingress) {
			metav1.SetMetaDataAnnotation(&i.ObjectMeta, "kubernetes.io/ingress.class", *i.Spec.IngressClassName)
			i.Spec.IngressClassName = nil
		})
	c.await("the TCP port", func() error {
		conn, err := net.Dial("tcp", net.JoinHostPort(service.Spec.ClusterIP, "9000"))
		if err != nil {
			return err
		}
		defer conn.Close()
		return new(echoed).send(conn)
	})
}

// runNginx runs a Deployment of ingress-nginx for Ingresses of a class of the test. It checks that requests are served,
// and that the controller writes the status and Events with its rights, as the holder of the Lease of ingress-nginx.
func (c *cluster) runNginx(file, lease string, changes ...func(*networkingv1.Ingress)) *corev1.Service {
	c.Helper()
	changes = append([]func(*networkingv1.Ingress){withClass(c.namespace)}, changes...)
	c.deploy("web", 1)
	c.ingress("shop", "web", changes...)
	c.ingress("bad", "absent", changes...)
	c.create(file)
	service := c.serviceNamed("ingress-nginx-controller")
	c.awaitUpdated(service.Name, 1)
	c.await("an answer through the controller", func() error {
		r, err := once(c.Context(), net.JoinHostPort(service.Spec.ClusterIP, "80"), "http://"+c.host("shop")+"/")
		if err == nil && (r.code != http.StatusOK || !strings.HasPrefix(r.pod, "web-")) {
			return fmt.Errorf("%d from %q", r.code, r.pod)
		}
		return err
	})
	c.awaitAddress("shop", service.Status.LoadBalancer.Ingress[0].IP)
	c.awaitEvent("bad")
	held, err := c.CoordinationV1().Leases(c.namespace).Get(c.Context(), lease, metav1.GetOptions{})
	if err != nil || held.Spec.HolderIdentity == nil || *held.Spec.HolderIdentity == "" {
		c.Errorf("the Lease is %v, error %v", held, err)
	}
	return service
}

// create creates the objects in a file until the test ends. NAMESPACE in the file stands for the namespace of the test.
func (c *cluster) create(file string) {
	c.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	client := c.dynamicClient()
	for _, object := range c.decode(strings.ReplaceAll(string(text), "NAMESPACE", c.namespace)) {
		if object.GetKind() == "Job" {
			c.playJob(object)
			continue
		}
		at := objectsOf(client, object)
		_, err := at.Create(c.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		c.must(err)
		c.Cleanup(func() {
			if c.Failed() && object.GetKind() == "Deployment" {
				c.logPods("app.kubernetes.io/component=controller")
			}
			if err := at.Delete(context.Background(), object.GetName(), metav1.DeleteOptions{}); err != nil {
				c.Error(err)
			}
		})
	}
}
