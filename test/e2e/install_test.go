package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

// installing is the time limit for a new controller, from its first object to its first response.
const installing = 3 * time.Minute

// kubectlDelete is the start of a command that cleans up even if the test has failed.
const kubectlDelete = "kubectl delete --ignore-not-found "

// TestInstall follows docs/install.md in each shape, with Helm, kubectl and kustomize. It pushes the image to a
// registry, from which the nodes pull it. The service account in the manifests replaces the account that other tests
// use.
func TestInstall(t *testing.T) {
	c := newCluster(t)
	c.startRegistry()
	c.deploy("web", 1)
	pair := c.newPair(c.host("shop"))
	c.secret("shop-tls", pair)
	c.ingress("shop", "web", ofClass("k8singress"), withTLS("shop-tls"))
	c.kubectl(t.Context(), "delete", "clusterrole,clusterrolebinding,namespace", "k8singress")
	c.kubectl(t.Context(), "delete", "namespace", storageNamespace)
	t.Cleanup(func() { c.must(c.inside.MakeAccount(context.Background())) })
	// The name of the Secret must not be replaced. Pods end without a delay.
	names := []string{
		"shop-tls", "shop-tls", "shop", c.namespace, "shutdown_delay 15s", "shutdown_delay 1s", "shutdown_delay: 15s",
		"shutdown_delay: 1s", "registry.example.com", registryAddress,
	}
	r := &installer{c.reader(names...), pair}
	r.push()
	page := map[string][]string{}
	for way, number := range map[string]int{"Helm": 2, "kubectl": 2, "kustomize": 3} {
		page[way] = r.scripts("install.md", "## With "+way, number)
	}
	another := r.scripts("install.md", "## Another shape", 2)
	for _, shape := range []string{"cluster", "namespaces", "least", "hostnetwork"} {
		in := func(script string) string { return strings.ReplaceAll(script, "deploy/cluster", "deploy/"+shape) }
		t.Run(shape+" with Helm", func(t *testing.T) {
			r := r.inTest(t)
			r.atEnd("helm uninstall k8singress --ignore-not-found --namespace k8singress\n" + kubectlDelete +
				"namespace k8singress k8singress-storage")
			if shape == "hostnetwork" {
				r.run(another[1])
			}
			r.run(in(page["Helm"][0]))
			r.checkServed(shape, "k8singress")
			r.run(page["Helm"][1])
		})
		t.Run(shape+" with kubectl", func(t *testing.T) {
			r := r.inTest(t)
			r.atEnd(kubectlDelete + "--filename mine.yaml")
			r.run(in(page["kubectl"][0]))
			r.checkServed(shape, "k8singress")
			r.run(page["kubectl"][1])
		})
	}
	t.Run("kustomize", func(t *testing.T) {
		r := r.inTest(t)
		r.atEnd(kubectlDelete + "--kustomize edge")
		r.run(page["kustomize"][0])
		r.checkServed("cluster", "edge")
		r.checkOverlay()
		r.run(page["kustomize"][1])
		r.run("kubectl --namespace edge rollout status deployment/k8singress-controller --timeout=3m")
		r.checkServed("cluster", "edge")
		r.run(page["kustomize"][2])
	})
	t.Run("rendered anew", func(t *testing.T) {
		r := r.inTest(t)
		r.atEnd(kubectlDelete + "--filename least.yaml\n" + kubectlDelete + "namespace edge")
		r.run(another[0])
		r.checkServed("least", "edge")
	})
	// This subtest is the last one, because it replaces the Ingress that the others use.
	t.Run("first Ingress", func(t *testing.T) { followFirstIngress(c.in(t)) })
}

// ofClass sets the class of an Ingress.
func ofClass(name string) func(*networkingv1.Ingress) {
	return func(i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To(name) }
}

// installer follows docs/install.md. There is an Ingress for the host shop with a certificate.
type installer struct {
	*reader
	certificate keyPair
}

// inTest returns the same installer for a subtest.
func (r *installer) inTest(t *testing.T) *installer {
	inner := *r.reader
	inner.cluster = r.in(t)
	return &installer{&inner, r.certificate}
}

// checkServed waits until the controller in a namespace responds for the host shop with its certificate, through its
// Service or at each node.
func (r *installer) checkServed(shape, namespace string) {
	r.Helper()
	begin := time.Now()
	var hosts []string
	r.awaitFor(installing, "the addresses of the controller", func() (err error) {
		hosts, err = r.addresses(shape, namespace)
		return err
	})
	for _, host := range hosts {
		r.awaitStatus(net.JoinHostPort(host, "80"), http.StatusOK)
		r.awaitSerial(&harness.Caddy{Options: harness.Options{HTTPS: net.JoinHostPort(host, "443")}}, r.host("shop"),
			r.certificate)
	}
	r.Logf("served after %v", time.Since(begin).Round(time.Millisecond))
	r.checkRights(shape, namespace)
}

// checkRights checks the rights of the controller with the API server.
func (r *installer) checkRights(shape, namespace string) {
	r.Helper()
	everywhere := shape == "cluster" || shape == "hostnetwork"
	storage := storageNamespace
	switch namespace + " " + shape {
	case "edge cluster":
		// kustomize moves all objects to its own namespace.
		storage = "edge"
	case "edge least":
		storage = "edge-" + storageNamespace
	}
	const networking, coordination = "networking.k8s.io", "coordination.k8s.io"
	for _, q := range []struct {
		verb, group, resource, namespace string
		want                             bool
	}{
		{"watch", networking, "ingresses", r.namespace, true},
		{"watch", networking, "ingresses", metav1.NamespaceAll, everywhere},
		{"watch", "", "secrets", r.namespace, shape != "least"},
		{"watch", "", "nodes", "", shape == "hostnetwork"},
		{"update", "", "secrets", r.namespace, false},
		{"update", "", "secrets", namespace, storage == namespace},
		{"delete", coordination, "leases", namespace, storage == namespace},
		{"update", "", "secrets", storage, true},
	} {
		review, err := r.AuthorizationV1().SubjectAccessReviews().Create(r.Context(),
			&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: "system:serviceaccount:" + namespace + ":k8singress",
				Groups: []string{
					"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace,
				},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: q.verb, Group: q.group, Resource: q.resource, Namespace: q.namespace,
				},
			}}, metav1.CreateOptions{})
		r.must(err)
		if review.Status.Allowed != q.want {
			r.Errorf("may it %s %s in %q? %+v", q.verb, q.resource, q.namespace, review.Status)
		}
	}
}

// addresses returns the address of the Service, or the addresses of all nodes if the pods use ports of the nodes.
func (r *installer) addresses(shape, namespace string) (all []string, err error) {
	if shape != "hostnetwork" {
		service, err := r.CoreV1().Services(namespace).Get(r.Context(), "k8singress-controller", metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []string{service.Spec.ClusterIP}, nil
	}
	nodes, err := r.CoreV1().Nodes().List(r.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				all = append(all, address.Address)
			}
		}
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%d nodes have an address", len(all))
	}
	return all, nil
}

// checkOverlay checks the changes of the kustomization in docs/install.md, except the namespace.
func (r *installer) checkOverlay() {
	r.Helper()
	deployment, err := r.AppsV1().Deployments("edge").Get(r.Context(), "k8singress-controller", metav1.GetOptions{})
	r.must(err)
	if image := deployment.Spec.Template.Spec.Containers[0].Image; image != registryAddress+"/k8singress:v1" {
		r.Errorf("the image is %s", image)
	}
	for name, want := range map[string]map[string]string{
		"k8singress-caddyfile": {"Caddyfile": "\n\t\tvia\n"}, "k8singress-controller": {"proxy-body-size": "20m"},
	} {
		configMap, err := r.CoreV1().ConfigMaps("edge").Get(r.Context(), name, metav1.GetOptions{})
		r.must(err)
		for key, text := range want {
			if !strings.Contains(configMap.Data[key], text) {
				r.Errorf("%s of %s is %q, without %q", key, name, configMap.Data[key], text)
			}
		}
	}
}

// TestSideBySide moves an Ingress to a second controller and back, as in docs/migrate.md, and removes that controller.
func TestSideBySide(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.ingress("shop", "web", c.withOwnClass)
	c.install("ingress-nginx", "testdata/stand-in", oldValues)
	before := net.JoinHostPort(c.serviceNamed("ingress-nginx-controller").Spec.ClusterIP, "80")
	c.awaitStatus(before, http.StatusOK)
	r := c.reader("--namespace ingress-nginx", "--namespace "+c.namespace, "namespace shop", "namespace "+c.namespace,
		`"nginx"`, `"`+c.namespace+`"`,
		// Both releases are restricted to one namespace, as the page recommends.
		"--values old.yaml", "--values old.yaml --set controller.scope.namespace="+c.namespace)
	scripts := r.scripts("migrate.md", "## Run side by side", 3)
	r.run(r.scripts("migrate.md", "## Check your manifests", 2)[1])
	r.atEnd("helm uninstall edge --ignore-not-found --namespace edge\n" + kubectlDelete + "namespace edge")
	r.run(scripts[0])
	service, err := c.CoreV1().Services("edge").Get(t.Context(), "edge-k8singress-controller", metav1.GetOptions{})
	c.must(err)
	beside := net.JoinHostPort(service.Spec.ClusterIP, "80")
	c.awaitStatus(beside, http.StatusNotFound)
	r.run(scripts[1])
	c.awaitStatus(beside, http.StatusOK)
	c.awaitStatus(before, http.StatusNotFound)
	r.run(scripts[2])
	c.awaitStatus(before, http.StatusOK)
}

// awaitStatus waits until a request for the host shop gets this status.
func (c *cluster) awaitStatus(address string, status int) {
	c.Helper()
	c.awaitFor(installing, fmt.Sprintf("%d at %s", status, address), func() error {
		r, err := once(c.Context(), address, "http://"+c.host("shop")+"/")
		if err == nil && r.code != status {
			err = fmt.Errorf("status %d", r.code)
		}
		return err
	})
}
