package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	namespace = "scale"
	// writers is the number of objects that are created at the same time.
	writers = 32
	// proxyNameLabel makes the testbed's kube-proxy ignore a Service. Otherwise its thousands of listeners would affect
	// the result.
	proxyNameLabel = "service.kubernetes.io/service-proxy-name"
)

// world creates the objects.
type world struct {
	cluster *harness.Cluster
	client  kubernetes.Interface
	// endpoints is the number of endpoints of each Service.
	endpoints int
	// ports are the ports of the backends, by name.
	ports map[string]int32
	// pair is the content of the TLS Secrets.
	pair map[string][]byte
}

func hostOf(i int) string { return fmt.Sprintf("host-%d.scale.test", i) }

func nameOf(i int) string { return fmt.Sprintf("web-%d", i) }

// create creates all objects in an order in which no reference is ever missing.
func (w *world) create(ctx context.Context, o options) error {
	var err error
	if w.pair, err = newPair(); err != nil {
		return err
	}
	if err := w.createScope(ctx); err != nil {
		return err
	}
	if err := w.createService(ctx, otherBackend, otherBackend, 0); err != nil {
		return err
	}
	for _, kind := range []struct {
		count  int
		create func(context.Context, int) error
	}{
		{o.secrets, w.createSecret},
		{o.ingresses, func(ctx context.Context, i int) error {
			return w.createService(ctx, nameOf(i), firstBackend, i*w.endpoints)
		}},
		{o.ingresses, func(ctx context.Context, i int) error {
			return w.createIngress(ctx, i, nameOf(i),
				i < o.secrets)
		}},
	} {
		if err := inParallel(ctx, kind.count, kind.create); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) createScope(ctx context.Context) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if _, err := w.client.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the namespace: %w", err)
	}
	class := &networkingv1.IngressClass{
		ObjectMeta: metav1.ObjectMeta{Name: "nginx"},
		Spec:       networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"},
	}
	if _, err := w.client.NetworkingV1().IngressClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating the class: %w", err)
	}
	return nil
}

// inParallel calls create with 0 to count-1, and stops at the first error.
func inParallel(ctx context.Context, count int, create func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	next := make(chan int)
	for range writers {
		group.Go(func() {
			for i := range next {
				if err := create(ctx, i); err != nil {
					cancel(fmt.Errorf("creating object %d of %d: %w", i, count, err))
				}
			}
		})
	}
	for i := 0; i < count && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

func (w *world) createSecret(ctx context.Context, i int) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: nameOf(i)}, Type: corev1.SecretTypeTLS, Data: w.pair}
	_, err := w.client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// createService creates a Service with one EndpointSlice. first is the number of its first address.
func (w *world) createService(ctx context.Context, name, backend string, first int) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{proxyNameLabel: "none"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}},
	}
	if _, err := w.client.CoreV1().Services(namespace).Create(ctx, service, metav1.CreateOptions{}); err != nil {
		return err
	}
	labels := map[string]string{discoveryv1.LabelServiceName: name, proxyNameLabel: "none"}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, AddressType: discoveryv1.AddressTypeIPv4,
		Ports: []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(w.ports[backend])}},
	}
	for i := range w.endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addressOf(first + i)}, Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(true)},
		})
	}
	_, err := w.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, slice, metav1.CreateOptions{})
	return err
}

// createIngress creates an Ingress with its own host for a Service.
func (w *world) createIngress(ctx context.Context, i int, service string, secure bool) error {
	path := networkingv1.HTTPIngressPath{
		Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix),
		Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
			Name: service, Port: networkingv1.ServiceBackendPort{Number: 80},
		}},
	}
	rule := networkingv1.IngressRule{Host: hostOf(i)}
	rule.HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}}
	ingress := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(i)},
		Spec: networkingv1.IngressSpec{IngressClassName: ptr.To("nginx"),
			Rules: []networkingv1.IngressRule{rule}},
	}
	if secure {
		metav1.SetMetaDataAnnotation(&ingress.ObjectMeta, "nginx.ingress.kubernetes.io/ssl-redirect", "false")
		ingress.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{hostOf(i)}, SecretName: nameOf(i)}}
	}
	_, err := w.client.NetworkingV1().Ingresses(namespace).Create(ctx, ingress, metav1.CreateOptions{})
	return err
}

// newPair creates the content of every TLS Secret: one certificate for all hosts.
func newPair() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"*.scale.test"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		corev1.TLSCertKey: encode("CERTIFICATE", der), corev1.TLSPrivateKeyKey: encode("PRIVATE KEY", private),
	}, nil
}

func encode(kind string, der []byte) []byte {
	var text bytes.Buffer
	_ = pem.Encode(&text, &pem.Block{Type: kind, Bytes: der})
	return text.Bytes()
}
