package k8singress_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// ringed is a controller whose endpoints are another controller.
type ringed struct{ *controller }

// ring runs two controllers, each of which forwards to the other. They have a host for each backend protocol, and a TCP
// port. Connections from the first to the second go through relays, which count them.
func ring(t *testing.T) (first ringed, passed *atomic.Int64) {
	t.Helper()
	passed = new(atomic.Int64)
	one, two := newController(t), newController(t)
	between := func(address string) string { return relay(t, address, passed) }
	runs(t, one, map[string]string{"plain": between(two.http), "tls": between(two.https), "port": between(two.stream)})
	runs(t, two, map[string]string{"plain": one.http, "tls": one.https, "port": one.stream})
	return ringed{one}, passed
}

// relay forwards connections to an address and counts them.
func relay(t *testing.T, address string, passed *atomic.Int64) string {
	t.Helper()
	listener := fixture.Listen(t)
	fixture.Serve(listener, func(conn net.Conn) {
		passed.Add(1)
		to, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		defer to.Close()
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, to)
		}()
		_, _ = io.Copy(to, conn)
	})
	return listener.Addr().String()
}

// runs starts a controller with one namespace per endpoint.
func runs(t *testing.T, c *controller, endpoints map[string]string) {
	t.Helper()
	folder := t.TempDir()
	manifests := "kind: IngressClass\napiVersion: networking.k8s.io/v1\nmetadata: {name: nginx}\nspec: {controller: " +
		"k8s.io/ingress-nginx}\n"
	for name, address := range endpoints {
		manifests += fmt.Sprintf(tenantOfOne, name, name, portOf(address))
	}
	manifests += fmt.Sprintf(
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: tcp-services, namespace: default}\n"+
			"data: {%q: \"port/web:80\"}\n", portOf(c.stream))
	const secure = "metadata: {name: web, namespace: tls}\nspec:\n  ingressClassName"
	manifests = strings.Replace(manifests, secure, strings.Replace(secure, "namespace: tls",
		"namespace: tls, annotations: {nginx.ingress.kubernetes.io/backend-protocol: HTTPS}", 1), 1)
	c.write(filepath.Join(folder, "all.yaml"), manifests)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	c.write(file, c.caddyfile("manifests "+folder+"\ntcp_services default/tcp-services\nstream_bind 127.0.0.1"))
	c.run(file)
}

// TestRing checks that a request that loops between two controllers gets 508 after a few rounds, for any kind of
// request and any protocol.
func TestRing(t *testing.T) {
	c, passed := ring(t)
	client := &http.Client{Timeout: patience,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	for _, host := range []string{"plain", "tls"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, "WebSocket"} {
			request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+c.http+"/", http.NoBody)
			switch request.Host = host; method {
			case http.MethodPost:
				request.Method, request.Body, request.ContentLength = method, io.NopCloser(strings.NewReader("body")), 4
			case "WebSocket":
				request.Header.Set("Connection", "Upgrade")
				request.Header.Set("Upgrade", "websocket")
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != http.StatusLoopDetected {
				t.Errorf("%s of %s: %s", method, host, response.Status)
			}
		}
	}
	// Eight rounds use four connections between the controllers, which are kept.
	if n := passed.Load(); n > 6*4 {
		t.Errorf("%d connections from one controller to the other", n)
	}
}

// TestRingOfPorts checks that a connection that loops between the TCP ports of two controllers, which cannot be
// detected, ends when the port's share of descriptors is used up, and that requests still succeed meanwhile.
func TestRingOfPorts(t *testing.T) {
	t.Setenv(filesOfCaddy, "500")
	c, passed := ring(t)
	conn, err := net.Dial("tcp", c.stream)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "round"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("it gets %q, %v", got, err)
	}
	t.Logf("%d connections from one controller to the other", passed.Load())
	if status, _, err := c.get(http.DefaultClient, "http://"+c.http); status != http.StatusNotFound {
		t.Errorf("a request gets %d, %v", status, err)
	}
}
