package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/test/harness"
)

// TestIngressEndToEnd checks requests through an Ingress, over HTTP and HTTPS, while pods are added and removed.
func TestIngressEndToEnd(t *testing.T) {
	c := newCluster(t)
	pair := c.newPair(c.host("web"))
	c.secret("web-tls", pair)
	c.deploy("web", 3)
	c.ingress("web", "web", withTLS("web-tls"), withReadTimeout)
	c.awaitEndpoints("web", 3, 0)
	caddy := c.caddy(c.options(0))

	c.awaitCode(caddy, c.host("web"), "/", http.StatusOK, "web-")
	c.awaitCertificate(caddy, c.host("web"), pair)
	c.awaitPods(caddy, c.host("web"), 3)

	l := c.startLoad(caddy, c.host("web"), pair)
	c.scale("web", 1)
	c.awaitEndpoints("web", 1, 0)
	c.awaitPods(caddy, c.host("web"), 1)
	l.check(c)

	c.scaleToNothing(caddy, l)

	c.scale("web", 2)
	c.awaitPods(caddy, c.host("web"), 2)
	l.allowed.Store(0)
	l.check(c)
	l.checkKept(c)
	c.checkNoReload(caddy)
	t.Logf("%d requests, %d of them 503 while there was no pod", l.requests.Load(), l.unavailable.Load())
}

// scaleToNothing checks that requests get 503, and no other error, after the last endpoint is removed.
func (c *cluster) scaleToNothing(caddy *harness.Caddy, l *load) {
	c.Helper()
	l.allowed.Store(http.StatusServiceUnavailable)
	c.scale("web", 0)
	c.awaitEndpoints("web", 0, 0)
	c.await("503 without pods", func() error {
		r, err := once(c.Context(), caddy.HTTP, "http://"+c.host("web")+"/")
		if err == nil && r.code != http.StatusServiceUnavailable {
			return fmt.Errorf("answered %d by %q", r.code, r.pod)
		}
		return err
	})
	l.check(c)
}

// TestUntilFirstApply starts Caddy without a reachable API server, and checks that it does not return 404 for hosts
// that it cannot know yet.
func TestUntilFirstApply(t *testing.T) {
	c := newCluster(t)
	o := c.options(0)
	o.Lines[0] = "kubeconfig " + c.deadKubeconfig()
	caddy := c.start(o)
	c.await("503 with Retry-After", func() error {
		r, err := once(t.Context(), caddy.HTTP, "http://any.test/")
		if err != nil {
			return err
		}
		if r.code != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" {
			return fmt.Errorf("answered %d, %v", r.code, r.header)
		}
		return nil
	})
	// The admin API knows the app only after Caddy has loaded the whole configuration. Requests get responses slightly
	// earlier.
	c.await("the status", func() error {
		status, err := caddy.Status(t.Context())
		if err == nil && status.Ready {
			t.Errorf("status is %+v", status)
		}
		return err
	})
}
