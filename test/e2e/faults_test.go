package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/k8singress/k8singress/test/harness"
)

// TestBadInputs checks that Ingresses with various faults do not affect a good Ingress.
func TestBadInputs(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.service("empty", "nobody")
	c.secret("garbage-tls", keyPair{[]byte("no certificate"), []byte("no key")})
	c.awaitEndpoints("web", 1, 0)
	for _, ingress := range []struct {
		name, service string
		change        func(*networkingv1.Ingress)
	}{
		{"norule", "web", func(i *networkingv1.Ingress) { i.Spec.Rules[0].HTTP = nil }},
		{"noservice", "absent", func(*networkingv1.Ingress) {}},
		{"noport", "web", func(i *networkingv1.Ingress) { backendOf(i).Port.Name = "absent" }},
		{"garbage", "web", withTLS("garbage-tls")},
		{"noclass", "web", withClass("absent")},
		{"empty", "empty", func(*networkingv1.Ingress) {}},
		{"good", "web", func(*networkingv1.Ingress) {}},
	} {
		c.ingress(ingress.name, ingress.service, ingress.change)
	}
	caddy := c.caddy(c.options(0))

	for host, code := range map[string]int{
		"norule": http.StatusNotFound, "noservice": http.StatusServiceUnavailable,
		"noport":  http.StatusServiceUnavailable,
		"garbage": http.StatusOK, "noclass": http.StatusNotFound, "empty": http.StatusServiceUnavailable,
		"good": http.StatusOK, "unknown": http.StatusNotFound,
	} {
		c.awaitCode(caddy, c.host(host), "/", code, "")
	}
	for ingress, reason := range map[string]string{
		"noservice": "ServiceNotFound", "noport": "InvalidBackend", "garbage": "InvalidTLSSecret",
		"noclass": "IngressClassNotFound",
		"empty":   "NoEndpoints",
	} {
		problem := c.awaitReason(caddy, ingress, reason)
		if problem.Message == "" || problem.Severity == "" {
			t.Errorf("Ingress %s: the problem says nothing: %+v", ingress, problem)
		}
	}
	c.checkAccepted(caddy, "good")
}

func (c *cluster) checkAccepted(caddy *harness.Caddy, ingress string) {
	c.Helper()
	verdicts, err := caddy.Verdicts(c.Context())
	c.must(err)
	if !slices.ContainsFunc(verdicts, func(v harness.Verdict) bool {
		return v.Object.Namespace == c.namespace && v.Object.Name == ingress && v.Accepted && len(v.Problems) == 0
	}) {
		c.Errorf("Ingress %s is not accepted without problems", ingress)
	}
}

// TestHelmSecretsCostNothing checks the number of Secrets that Caddy holds. The API server must not send it the Secrets
// of Helm releases.
func TestHelmSecretsCostNothing(t *testing.T) {
	c := newCluster(t)
	c.releases(200, 100<<10)
	c.secret("web-tls", c.newPair(c.host("web")))
	all, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{FieldSelector: "type!=helm.sh/release.v1"})
	c.must(err)
	caddy := c.caddy(c.options(0))
	status, err := caddy.Status(t.Context())
	c.must(err)
	if held := status.Objects["Secret"]; held == 0 || held > len(all.Items) {
		t.Errorf("Caddy holds %d Secrets, of %d that are no releases: %v", held, len(all.Items), status.Objects)
	}
}

// releases creates Secrets like Helm.
func (c *cluster) releases(count, size int) {
	c.Helper()
	content := map[string][]byte{"release": bytes.Repeat([]byte("H4sI"), size/4)}
	errs := make(chan error, count)
	var creators sync.WaitGroup
	for i := range count {
		creators.Go(func() {
			secret := &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("sh.helm.release.v1.web.v%d", i)},
				Type:       "helm.sh/release.v1", Data: content,
			}
			_, err := c.CoreV1().Secrets(c.namespace).Create(c.Context(), secret, metav1.CreateOptions{})
			errs <- err
		})
	}
	creators.Wait()
	close(errs)
	for err := range errs {
		c.must(err)
	}
}

// TestAPIServerAway stops the API server, so that its connections hang, and then kills it, so that they break. It
// checks that requests succeed in the meantime, and that changes arrive afterwards.
func TestAPIServerAway(t *testing.T) {
	c := newCluster(t)
	pair := c.newPair(c.host("web"))
	c.secret("web-tls", pair)
	c.deploy("web", 2)
	c.ingress("web", "web", withTLS("web-tls"))
	c.awaitEndpoints("web", 2, 0)
	caddy := c.caddy(c.options(0))
	c.awaitPods(caddy, c.host("web"), 2)
	l := c.startLoad(caddy, c.host("web"), pair)
	l.check(c)

	c.must(c.inside.Signal("kube-apiserver", syscall.SIGSTOP))
	resume := sync.OnceValue(func() error { return c.inside.Signal("kube-apiserver", syscall.SIGCONT) })
	t.Cleanup(func() { _ = resume() })
	c.servesOn(caddy, l)
	c.must(resume())
	c.ingress("stopped", "web")
	c.awaitCode(caddy, c.host("stopped"), "/", http.StatusOK, "web-")
	l.check(c)

	c.must(c.inside.Signal("kube-apiserver", syscall.SIGKILL))
	c.servesOn(caddy, l)
	c.await("the API server is back", func() error {
		return c.Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Error()
	})
	c.ingress("killed", "web")
	c.awaitFor(2*deadline, "the Ingress made after that", func() error {
		r, err := once(t.Context(), caddy.HTTP, "http://"+c.host("killed")+"/")
		if err == nil && r.code != http.StatusOK {
			return fmt.Errorf("answered %d", r.code)
		}
		return err
	})
	l.check(c)
	l.checkKept(c)
	c.checkNoReload(caddy)
}

// servesOn checks that requests on old and new connections succeed for longer than all timeouts of Caddy.
func (c *cluster) servesOn(caddy *harness.Caddy, l *load) {
	c.Helper()
	until := l.requests.Load() + 2000
	c.await("2000 requests", func() error {
		if l.requests.Load() < until {
			return errors.New("not yet")
		}
		return nil
	})
	l.check(c)
	c.awaitPods(caddy, c.host("web"), 2)
	if status, err := caddy.Status(c.Context()); err != nil || !status.Ready {
		c.Errorf("status is %+v, %v", status, err)
	}
}

// deadKubeconfig writes a kubeconfig for an API server that does not exist.
func (c *cluster) deadKubeconfig() string {
	c.Helper()
	config, err := clientcmd.LoadFromFile(c.inside.Kubeconfig())
	c.must(err)
	for _, server := range config.Clusters {
		server.Server = "https://127.0.0.1:1"
	}
	path := c.TempDir() + "/kubeconfig"
	c.must(clientcmd.WriteToFile(*config, path))
	return path
}
