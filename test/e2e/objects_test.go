package e2e

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// graceSeconds is the time for which a deleted pod still accepts requests, so that all components can learn of its
// deletion.
const graceSeconds = 3

// deploy creates a Deployment of echo and a Service for it.
func (c *cluster) deploy(name string, replicas int32, changes ...func(*corev1.PodSpec)) {
	c.Helper()
	spec := corev1.PodSpec{Containers: []corev1.Container{echoContainer()}}
	for _, change := range changes {
		change(&spec)
	}
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec,
			},
		},
	}
	_, err := c.AppsV1().Deployments(c.namespace).Create(c.Context(), deployment, metav1.CreateOptions{})
	c.must(err)
	c.service(name, name)
}

func echoContainer() corev1.Container {
	return corev1.Container{
		Name: "echo", Image: "registry.example/demo/echo:v1",
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "stream", ContainerPort: 9000}},
		Env: []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"},
		}}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready",
				Port: intstr.FromString("http")}},
			PeriodSeconds: 1,
		},
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: graceSeconds}},
		},
	}
}

// service creates a Service with the ports http and stream for the pods of a Deployment.
func (c *cluster) service(name, app string) {
	c.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromString("http")},
				{Name: "stream", Port: 9000, TargetPort: intstr.FromString("stream")},
			},
		},
	}
	_, err := c.CoreV1().Services(c.namespace).Create(c.Context(), service, metav1.CreateOptions{})
	c.must(err)
}

func (c *cluster) scale(name string, replicas int32) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := c.AppsV1().Deployments(c.namespace).Patch(c.Context(), name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	c.must(err)
}

// endpoints returns the number of ready endpoints and of other endpoints of a Service.
func (c *cluster) endpoints(name string) (ready, others int) {
	c.Helper()
	slices, err := c.DiscoveryV1().EndpointSlices(c.namespace).List(c.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	c.must(err)
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready++
			} else {
				others++
			}
		}
	}
	return ready, others
}

func (c *cluster) awaitEndpoints(name string, ready, others int) {
	c.Helper()
	c.await(fmt.Sprintf("%d ready endpoints of %s and %d others", ready, name, others), func() error {
		if r, o := c.endpoints(name); r != ready || o != others {
			return fmt.Errorf("%d ready, %d others", r, o)
		}
		return nil
	})
}

// ingress creates an Ingress of the class nginx that sends a host to the port http of a Service. The first label of the
// host is the name of the Ingress.
func (c *cluster) ingress(name, service string, changes ...func(*networkingv1.Ingress)) {
	c.Helper()
	backend := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: service, Port: networkingv1.ServiceBackendPort{Name: "http"},
	}}
	path := networkingv1.HTTPIngressPath{Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix), Backend: backend}
	ingress := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: networkingv1.IngressSpec{
			IngressClassName: ptr.To("nginx"),
			Rules: []networkingv1.IngressRule{{
				Host: c.host(name),
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{path},
				}},
			}},
		},
	}
	for _, change := range changes {
		change(ingress)
	}
	_, err := c.NetworkingV1().Ingresses(c.namespace).Create(c.Context(), ingress, metav1.CreateOptions{})
	c.must(err)
}

// withTLS adds a TLS Secret for all hosts of an Ingress. The hosts are still served over HTTP, too.
func withTLS(secret string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) {
		tls := networkingv1.IngressTLS{SecretName: secret}
		for _, rule := range i.Spec.Rules {
			tls.Hosts = append(tls.Hosts, rule.Host)
		}
		i.Spec.TLS = append(i.Spec.TLS, tls)
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, sslRedirect, "false")
	}
}

// withReadTimeout sets a read timeout that is shorter than the deadline of clients. If a pod ends on a busy machine,
// its last response may be lost, because its network is removed before the response arrives.
func withReadTimeout(i *networkingv1.Ingress) {
	metav1.SetMetaDataAnnotation(&i.ObjectMeta, "nginx.ingress.kubernetes.io/proxy-read-timeout", "8")
}

const sslRedirect = "nginx.ingress.kubernetes.io/ssl-redirect"

func withClass(name string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) { i.Spec.IngressClassName = &name }
}

// backendOf returns the Service of an Ingress that the method ingress has created.
func backendOf(i *networkingv1.Ingress) *networkingv1.IngressServiceBackend {
	return i.Spec.Rules[0].HTTP.Paths[0].Backend.Service
}

// change updates an Ingress, and retries if its status was written in between.
func (c *cluster) change(name string, changes ...func(*networkingv1.Ingress)) {
	c.Helper()
	ingresses := c.NetworkingV1().Ingresses(c.namespace)
	for {
		ingress, err := ingresses.Get(c.Context(), name, metav1.GetOptions{})
		c.must(err)
		for _, change := range changes {
			change(ingress)
		}
		if _, err = ingresses.Update(c.Context(), ingress, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			c.must(err)
			return
		}
	}
}

func (c *cluster) deleteIngress(name string) {
	c.Helper()
	c.must(c.NetworkingV1().Ingresses(c.namespace).Delete(c.Context(), name, metav1.DeleteOptions{}))
}

// secret creates or replaces a TLS Secret.
func (c *cluster) secret(name string, pair keyPair) {
	c.Helper()
	secrets := c.CoreV1().Secrets(c.namespace)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{corev1.TLSCertKey: pair.certificate, corev1.TLSPrivateKeyKey: pair.key},
	}
	_, err := secrets.Create(c.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(c.Context(), secret, metav1.UpdateOptions{})
	}
	c.must(err)
}

// tcpServices creates or replaces the ConfigMap of the TCP ports.
func (c *cluster) tcpServices(data map[string]string) {
	c.Helper()
	maps := c.CoreV1().ConfigMaps(c.namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "tcp-services"}, Data: data}
	_, err := maps.Create(c.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(c.Context(), object, metav1.UpdateOptions{})
	}
	c.must(err)
}

// withPort sets the number of the Service port.
func withPort(number int32) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) { backendOf(i).Port = networkingv1.ServiceBackendPort{Number: number} }
}

// label sets a label of the namespace.
func (c *cluster) label(key, value string) {
	c.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := c.CoreV1().Namespaces().Patch(c.Context(), c.namespace, types.MergePatchType, patch,
		metav1.PatchOptions{})
	c.must(err)
}
