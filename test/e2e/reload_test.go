package e2e

import (
	"net/http"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/k8singress/k8singress/test/harness"
)

// reloadTest holds what the rows of TestNothingReloads share: the Deployment "steady", which is under load and has an
// open WebSocket, and the Deployment "other".
type reloadTest struct {
	*cluster
	caddy *harness.Caddy
}

// TestNothingReloads makes every possible change while clients use old and new connections and a WebSocket is open.
// After each change, it checks that the change is in effect, that no request has failed, that the WebSocket is open,
// and that Caddy has not reloaded.
func TestNothingReloads(t *testing.T) {
	c := newCluster(t)
	pair := c.newPair(c.host("steady"))
	c.secret("steady-tls", pair)
	c.deploy("steady", 2)
	c.deploy("other", 1)
	c.ingress("steady", "steady", withTLS("steady-tls"))
	c.tcpServices(map[string]string{})
	c.awaitEndpoints("steady", 2, 0)
	c.awaitEndpoints("other", 1, 0)
	caddy := c.caddy(c.options(0, "tcp_services "+c.namespace+"/tcp-services", "stream_bind 127.0.0.1"))
	c.awaitCode(caddy, c.host("steady"), "/", http.StatusOK, "steady-")
	l := c.startLoad(caddy, c.host("steady"), pair)
	s := c.openStream(caddy, c.host("steady"))
	l.check(c)

	for _, row := range []struct {
		name   string
		change func(*reloadTest)
	}{
		{"an Ingress is added", (*reloadTest).added},
		{"an Ingress is changed", (*reloadTest).changed},
		{"an Ingress is deleted", (*reloadTest).deleted},
		{"TLS is added to an Ingress", (*reloadTest).tlsAdded},
		{"a missing Secret appears", (*reloadTest).secretAppears},
		{"a missing Service appears", (*reloadTest).serviceAppears},
		{"a referenced Secret changes", (*reloadTest).secretChanges},
		{"a referenced ConfigMap changes", (*reloadTest).configMapChanges},
		{"endpoints change", (*reloadTest).endpointsChange},
		{"a TCP port comes and goes", (*reloadTest).portComesAndGoes},
		{"an Ingress changes its class", (*reloadTest).ingressMoves},
		{"an IngressClass changes hands", (*reloadTest).classMoves},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			row.change(&reloadTest{cluster: c, caddy: caddy})
			l.check(c)
			s.check(c)
			c.checkNoReload(caddy)
		})
	}
	l.checkKept(c)
	t.Logf("%d requests, %d messages over the WebSocket", l.requests.Load(), s.messages.Load())
}

// serves waits for the response to a request for the host of an Ingress.
func (r *reloadTest) serves(name, path string, code int, deployment string) {
	r.Helper()
	r.awaitCode(r.caddy, r.host(name), path, code, deployment)
}

func (r *reloadTest) added() {
	r.serves("added", "/", http.StatusNotFound, "")
	r.ingress("added", "other")
	r.serves("added", "/", http.StatusOK, "other-")
}

func (r *reloadTest) changed() {
	r.ingress("changed", "other")
	r.serves("changed", "/", http.StatusOK, "other-")
	r.change("changed", func(i *networkingv1.Ingress) { backendOf(i).Name = "steady" })
	r.serves("changed", "/", http.StatusOK, "steady-")
	r.change("changed", func(i *networkingv1.Ingress) { i.Spec.Rules[0].HTTP.Paths[0].Path = "/moved" })
	r.serves("changed", "/moved", http.StatusOK, "steady-")
	r.serves("changed", "/", http.StatusNotFound, "")
}

func (r *reloadTest) deleted() {
	r.ingress("deleted", "other")
	r.serves("deleted", "/", http.StatusOK, "other-")
	r.deleteIngress("deleted")
	r.serves("deleted", "/", http.StatusNotFound, "")
}

func (r *reloadTest) tlsAdded() {
	pair := r.newPair(r.host("plain"))
	r.secret("plain-tls", pair)
	r.ingress("plain", "other")
	r.serves("plain", "/", http.StatusOK, "other-")
	r.change("plain", withTLS("plain-tls"))
	r.awaitCertificate(r.caddy, r.host("plain"), pair)
}

func (r *reloadTest) secretAppears() {
	pair := r.newPair(r.host("nosecret"))
	r.ingress("nosecret", "other", withTLS("late-tls"))
	r.serves("nosecret", "/", http.StatusOK, "other-")
	r.awaitReason(r.caddy, "nosecret", "SecretNotFound")
	if _, err := once(r.Context(), r.caddy.HTTPS, "https://"+r.host("nosecret")+"/", pair); err == nil {
		r.Error("the host has its certificate before the Secret is there")
	}
	r.secret("late-tls", pair)
	r.awaitCertificate(r.caddy, r.host("nosecret"), pair)
}

func (r *reloadTest) serviceAppears() {
	r.ingress("noservice", "late")
	r.serves("noservice", "/", http.StatusServiceUnavailable, "")
	r.service("late", "other")
	r.serves("noservice", "/", http.StatusOK, "other-")
}

func (r *reloadTest) secretChanges() {
	first, second := r.newPair(r.host("rotated")), r.newPair(r.host("rotated"))
	r.secret("rotated-tls", first)
	r.ingress("rotated", "other", withTLS("rotated-tls"))
	r.awaitCertificate(r.caddy, r.host("rotated"), first)
	r.secret("rotated-tls", second)
	r.awaitCertificate(r.caddy, r.host("rotated"), second)
}

func (r *reloadTest) configMapChanges() {
	r.tcpServices(map[string]string{"9100": r.namespace + "/other:80"})
	r.awaitPort("9100", "other-")
	r.tcpServices(map[string]string{"9100": r.namespace + "/steady:http"})
	r.awaitPort("9100", "steady-")
}

func (r *reloadTest) endpointsChange() {
	r.ingress("endpoints", "other")
	r.awaitPods(r.caddy, r.host("endpoints"), 1)
	r.scale("other", 3)
	r.awaitPods(r.caddy, r.host("endpoints"), 3)
	r.scale("other", 1)
	r.awaitPods(r.caddy, r.host("endpoints"), 1)
}

func (r *reloadTest) portComesAndGoes() {
	kept := map[string]string{"9100": r.namespace + "/steady:http"}
	r.tcpServices(kept)
	r.awaitPort("9100", "steady-")
	r.awaitRefused("127.0.0.1:9101")
	r.tcpServices(map[string]string{"9100": kept["9100"], "9101": r.namespace + "/other:http"})
	r.awaitPort("9101", "other-")
	r.tcpServices(kept)
	r.awaitRefused("127.0.0.1:9101")
	r.awaitPort("9100", "steady-")
}

func (r *reloadTest) ingressMoves() {
	r.class("elsewhere", "example.com/another-controller")
	defer r.deleteClass("elsewhere")
	r.ingress("moving", "other")
	r.serves("moving", "/", http.StatusOK, "other-")
	r.change("moving", withClass("elsewhere"))
	r.serves("moving", "/", http.StatusNotFound, "")
	r.change("moving", withClass("nginx"))
	r.serves("moving", "/", http.StatusOK, "other-")
}

// classMoves deletes a class and creates it again for another controller, because the field is immutable.
func (r *reloadTest) classMoves() {
	r.class("side", controller)
	defer r.deleteClass("side")
	r.ingress("side", "other", withClass("side"))
	r.serves("side", "/", http.StatusOK, "other-")
	r.deleteClass("side")
	r.class("side", "example.com/another-controller")
	r.serves("side", "/", http.StatusNotFound, "")
	r.deleteClass("side")
	r.class("side", controller)
	r.serves("side", "/", http.StatusOK, "other-")
}
