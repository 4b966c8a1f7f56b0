package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/test/harness"
)

// TestStorageContract runs the unit tests of the storage, which can use a real API server. They are in the other
// module, so they are a separate program.
func TestStorageContract(t *testing.T) {
	t.Parallel() // It waits for locks most of the time, and uses no port and no object of another test.
	cluster, _ := harness.Inside()
	program := filepath.Join(t.TempDir(), "kubestorage.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, "./internal/kube/storage")
	build.Dir = "../.."
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the tests: %v\n%s", err, output)
	}
	run := exec.CommandContext(t.Context(), program, "-test.timeout=5m", "-test.v")
	run.Dir = t.TempDir()
	run.Env = append(os.Environ(), "K8SINGRESS_STORAGE_KUBECONFIG="+cluster.Kubeconfig())
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if n := strings.Count(string(output), "--- PASS: Test"); n < 20 {
		t.Errorf("%d tests ran:\n%s", n, output)
	}
}

// TestStorageIsShared checks that a second replica with the rights of deploy/cluster uses the certificate of the first
// replica, also after the first one was killed.
func TestStorageIsShared(t *testing.T) {
	c := newCluster(t)
	host := c.host("shared")
	first := c.storing(0, host)
	serial := c.storedSerial(first, host)
	second := c.storing(1, host)
	if got := c.storedSerial(second, host); got != serial {
		t.Errorf("the second replica has the certificate %s, the first one %s", got, serial)
	}
	first.Kill()
	third := c.storing(2, host)
	if got := c.storedSerial(third, host); got != serial {
		t.Errorf("after the first one was killed, a third has the certificate %s, not %s", got, serial)
	}
	c.checkSecrets(host)
	for _, caddy := range []*harness.Caddy{second, third} {
		if log := caddy.Log(); strings.Contains(log, "forbidden") {
			t.Errorf("rights are missing:\n%s", log)
		}
	}
}

// storing starts a replica with a site whose certificate comes from Caddy's own CA.
func (c *cluster) storing(number int, host string) *harness.Caddy {
	c.Helper()
	o := c.options(number)
	o.Global = "\tskip_install_trust\n\tstorage kubernetes {\n\t\tnamespace " + storageNamespace +
		"\n\t\tkubeconfig " + c.inside.AccountKubeconfig() + "\n\t}\n"
	o.Sites = fmt.Sprintf("https://%s:%d {\n\tbind 127.0.0.1\n\ttls internal\n\trespond ok\n}\n", host,
		storingPort+number)
	return c.caddy(o)
}

const (
	storingPort = 9443
	// storageNamespace is the namespace of the storage in deploy/cluster.
	storageNamespace = "k8singress-storage"
)

// storedSerial returns the serial number of a replica's certificate.
func (c *cluster) storedSerial(caddy *harness.Caddy, host string) string {
	c.Helper()
	number := slices.Index([]string{"127.0.0.1:2019", "127.0.0.1:2020", "127.0.0.1:2021"}, caddy.Admin)
	var leaf *x509.Certificate
	c.await("a certificate", func() error {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", storingPort+number),
			&tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err != nil {
			return err
		}
		defer connection.Close()
		leaf = connection.ConnectionState().PeerCertificates[0]
		return leaf.VerifyHostname(host)
	})
	return leaf.SerialNumber.String()
}

// checkSecrets checks the Secret of the certificate through the API server.
func (c *cluster) checkSecrets(host string) {
	c.Helper()
	list, err := c.CoreV1().Secrets(storageNamespace).List(c.Context(),
		metav1.ListOptions{LabelSelector: "k8singress.io/storage=certmagic",
			FieldSelector: "type=" + string(corev1.SecretTypeTLS)})
	c.must(err)
	var found []error
	for _, secret := range list.Items {
		if !strings.HasSuffix(secret.Annotations["k8singress.io/storage-site"], "/"+host) {
			continue
		}
		_, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
		found = append(found, err)
	}
	if len(found) != 1 || errors.Join(found...) != nil {
		c.Errorf("of %d Secrets, these are of the site: %v", len(list.Items), found)
	}
}
