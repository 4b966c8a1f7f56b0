package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestStorageMoves upgrades a release that stores certificates in its own namespace, as earlier versions of the chart
// did. Clients get the same certificate after the upgrade, without another order, and after the old Secrets are deleted
// as NOTES says. The controller may no longer change Secrets of its own namespace.
func TestStorageMoves(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	host := c.host("shop")
	c.ingress("shop", "web", c.withOwnClass, func(i *networkingv1.Ingress) {
		i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{host}}}
	})
	c.installWith("edge", "storage-values.yaml", "--set", "k8singress.storageNamespace.name="+c.namespace)
	const deployment = "edge-k8singress-controller"
	address := net.JoinHostPort(c.serviceNamed(deployment).Spec.ClusterIP, "443")
	before := c.awaitIssued(address, host)
	if n := c.stored(c.namespace, host); n != 1 {
		t.Fatalf("%d Secrets of the release's namespace have the certificate", n)
	}

	storage := c.namespace + "-edge-k8singress-storage"
	c.Cleanup(func() { c.kubectl(context.Background(), "delete", "namespace", storage, "--ignore-not-found") })
	notes := c.helm("upgrade", "edge", ownChart, "--wait", "--timeout=3m", "--values", c.values("storage-values.yaml"))
	c.awaitUpdated(deployment, 1)
	if after := c.awaitIssued(address, host); after != before {
		t.Errorf("the certificate is %s after the upgrade, and it was %s", after, before)
	}
	for namespace, may := range map[string]bool{c.namespace: false, storage: true} {
		for _, verb := range []string{"update", "delete"} {
			c.checkMay(verb, namespace, "edge-k8singress", may)
		}
	}
	r := c.reader()
	_, script, found := strings.Cut(notes, "\n  kubectl -n "+c.namespace+" delete ")
	script, _, _ = strings.Cut(script, "\n")
	if !found {
		t.Fatalf("NOTES does not say how to delete the old certificates:\n%s", notes)
	}
	r.run("kubectl -n " + c.namespace + " delete " + script)
	if n := c.stored(c.namespace, host); n != 0 {
		t.Errorf("%d Secrets of the release's namespace have the certificate", n)
	}
	c.kubectl(t.Context(), "rollout", "restart", "deployment/"+deployment, "--namespace", c.namespace)
	c.awaitUpdated(deployment, 1)
	if after := c.awaitIssued(address, host); after != before {
		t.Errorf("the certificate is %s with new pods, and it was %s", after, before)
	}
}

// awaitIssued waits until a host has a certificate of Caddy's own authority, and returns its serial number.
func (c *cluster) awaitIssued(address, host string) (number string) {
	c.Helper()
	c.awaitFor(installing, "an issued certificate for "+host, func() error {
		conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		defer conn.Close()
		leaf := conn.ConnectionState().PeerCertificates[0]
		number = serial(leaf)
		return errors.Join(leaf.VerifyHostname(host), issuedByCaddy(leaf))
	})
	return number
}

func issuedByCaddy(leaf *x509.Certificate) error {
	if name := leaf.Issuer.CommonName; !strings.HasPrefix(name, "Caddy Local Authority") {
		return fmt.Errorf("its issuer is %q", name)
	}
	return nil
}

// stored returns the number of Secrets in a namespace that contain the certificate of a host.
func (c *cluster) stored(namespace, host string) (n int) {
	c.Helper()
	ofStorage := metav1.ListOptions{LabelSelector: "k8singress.io/storage=certmagic"}
	list, err := c.CoreV1().Secrets(namespace).List(c.Context(), ofStorage)
	c.must(err)
	for _, secret := range list.Items {
		if strings.HasSuffix(secret.Annotations["k8singress.io/storage-site"], "/"+host) {
			n++
		}
	}
	return n
}

// checkMay checks whether the service account of a release may do something with all Secrets of a namespace.
func (c *cluster) checkMay(verb, namespace, account string, want bool) {
	c.Helper()
	answer := c.reader().run("kubectl auth can-i " + verb + " secrets --namespace " + namespace +
		" --as system:serviceaccount:" + c.namespace + ":" + account + " 2>/dev/null || true")
	if got := strings.HasPrefix(answer, "yes"); got != want || !got && !strings.HasPrefix(answer, "no") {
		c.Errorf("may it %s Secrets in %s? %s", verb, namespace, answer)
	}
}
