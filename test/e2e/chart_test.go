package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/k8singress/k8singress/test/harness"
)

const (
	ownChart = "../../charts/k8singress"
	// oldValues is a file with values for the chart of ingress-nginx.
	oldValues = "old-values.yaml"
	// scaling is the time limit for changes of the number of pods on a slow machine.
	scaling = 5 * time.Minute
)

// TestChart installs the chart with values of the ingress-nginx chart, and checks that its Service responds.
func TestChart(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.ingress("shop", "web", c.withOwnClass)
	begin := time.Now()
	notes := c.install("edge", ownChart, oldValues)
	service := c.serviceNamed("edge-k8singress-controller")
	l := c.awaitServed(service)
	t.Logf("the first answer after %v", time.Since(begin).Round(time.Millisecond))
	l.check(c)
	c.awaitWebhook("edge-k8singress-admission")
	c.checkWebhook()
	for _, says := range []string{"so there are no Jobs", "controller.enableMimalloc",
		"requests /readyz instead of /healthz"} {
		if !strings.Contains(notes, says) {
			t.Errorf("NOTES lacks %q:\n%s", says, notes)
		}
	}
	if text := c.body(l.caddy.HTTP, "http://nobody.test/"); text != "default backend - 404" {
		t.Errorf("an unknown host gets %q, and not what the default backend says", text)
	}
	if r, err := once(t.Context(), l.caddy.HTTP, "http://"+c.host("shop")+"/"); err != nil ||
		r.header.Get("X-Served-By") != "edge" {
		t.Errorf("addHeaders: %v, %v", r.header, err)
	}
	c.awaitAddress("shop", service.Status.LoadBalancer.Ingress[0].IP)
}

// TestUpgradeInPlace replaces ingress-nginx in a release by this chart, goes back, and changes the number of pods. It
// checks that the Service stays, that no request fails, that the access logs of all pods contain each request once, and
// that the webhook goes on with the certificate of the controller.
func TestUpgradeInPlace(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.ingress("shop", "web", c.withOwnClass)
	c.install("ingress-nginx", "testdata/stand-in", oldValues)
	before := c.serviceNamed("ingress-nginx-controller")
	logs := c.followLogs("app.kubernetes.io/component=controller")
	l := c.awaitServed(before)

	r := c.reader("--namespace ingress-nginx", "--namespace "+c.namespace)
	r.run(r.scripts("migrate.md", "## Check your manifests", 2)[1])
	scripts := r.scripts("migrate.md", "## Upgrade in place", 2)
	if notes := r.run(scripts[0]); !strings.Contains(notes, "It has replaced ingress-nginx") {
		t.Errorf("NOTES does not say so:\n%s", notes)
	}
	c.awaitUpdated("ingress-nginx-controller", 2)
	l.check(c)
	c.awaitWebhook("ingress-nginx-admission")
	c.checkWebhook()
	r.run(scripts[1])
	c.awaitUpdated("ingress-nginx-controller", 2)
	l.check(c)
	// Upgrade once more from a release of this chart, which finds its own objects.
	for _, label := range []string{"one", "two"} {
		c.helm("upgrade", "ingress-nginx", ownChart, "--wait", "--values", c.values(oldValues), "--set",
			"controller.podLabels.upgrade="+label)
		c.awaitUpdated("ingress-nginx-controller", 2)
		l.check(c)
	}
	c.scaleUntil(l, "ingress-nginx-controller")
	c.checkWebhook()
	if after := c.serviceNamed("ingress-nginx-controller"); after.UID != before.UID ||
		after.Spec.ClusterIP != before.Spec.ClusterIP {
		t.Errorf("the Service is another one: %s at %s, and it was %s at %s", after.UID, after.Spec.ClusterIP,
			before.UID, before.Spec.ClusterIP)
	}
	sent := l.finish(c)
	t.Logf("%d requests over %d connections that are kept, and over new ones", sent, l.connections.Load())
	if enough := enoughRequests(); sent < enough {
		t.Errorf("%d requests were sent, want %d", sent, enough)
	}
	c.scale("ingress-nginx-controller", 0)
	// The versions are the stand-in, and three releases of this chart.
	logs.check(sent, 4)
}

// enoughRequests returns the minimum number of requests during an upgrade in place.
func enoughRequests() int64 {
	if testing.Short() {
		return 5_000
	}
	return 50_000
}

// scaleUntil scales a Deployment up and down until enough requests were sent or the time is over. It fails the test if
// a request failed.
func (c *cluster) scaleUntil(l *load, deployment string) {
	c.Helper()
	enough := enoughRequests()
	begin := time.Now()
	for first := true; first || l.requests.Load() < enough && time.Since(begin) < scaling; first = false {
		for _, replicas := range []int32{4, 1, 2} {
			c.scale(deployment, replicas)
			c.awaitUpdated(deployment, replicas)
			l.check(c)
		}
	}
	c.Logf("%d requests, with more pods and fewer for %v", l.requests.Load(), time.Since(begin).Round(time.Second))
}

// body returns the response body.
func (c *cluster) body(address, url string) string {
	c.Helper()
	response, err := (&http.Client{Transport: newTransport(address), Timeout: deadline}).Get(url)
	c.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	c.must(err)
	return string(text)
}

// withOwnClass sets the class in the values for an Ingress.
func (c *cluster) withOwnClass(ingress *networkingv1.Ingress) {
	ingress.Spec.IngressClassName = ptr.To(c.namespace)
}

// values writes a file of testdata with the names of this test, and returns its path.
func (c *cluster) values(name string) string {
	c.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	c.must(err)
	file := filepath.Join(c.TempDir(), name)
	c.must(os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "NAMESPACE", c.namespace)), 0o600))
	return file
}

// installWith installs our chart with a file of values and more arguments, like install.
func (c *cluster) installWith(release, values string, arguments ...string) string {
	c.Helper()
	return c.installChart(release, ownChart, append(arguments, "--values", c.values(values))...)
}

// install installs a chart with a file of values, and uninstalls it when the test ends. It returns the output of Helm.
func (c *cluster) install(release, chart, values string) string {
	c.Helper()
	return c.installChart(release, chart, "--values", c.values(values))
}

func (c *cluster) installChart(release, chart string, arguments ...string) string {
	c.Helper()
	c.Cleanup(func() {
		if out, err := c.helmCommand(context.Background(), "uninstall", release).CombinedOutput(); err != nil {
			c.Errorf("helm uninstall: %v\n%s", err, out)
		}
	})
	return c.helm(append([]string{"install", release, chart, "--wait", "--timeout=3m"}, arguments...)...)
}

func (c *cluster) helm(arguments ...string) string {
	c.Helper()
	out, err := c.helmCommand(c.Context(), arguments...).CombinedOutput()
	if err != nil {
		c.logControllers()
		c.Fatalf("helm %s: %v\n%s", arguments[0], err, out)
	}
	return string(out)
}

func (c *cluster) helmCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, c.inside.Programs.Helm, append(arguments, "--namespace", c.namespace)...)
	command.Env = c.helmEnvironment()
	return command
}

func (c *cluster) helmEnvironment() []string {
	return append(os.Environ(), "KUBECONFIG="+c.inside.Kubeconfig(), "HOME="+filepath.Join(c.inside.Folder, "helm"))
}

// logControllers logs the output of the pods of charts.
func (c *cluster) logControllers() { c.logPods("app.kubernetes.io/instance") }

func (c *cluster) logPods(selector string) {
	pods, err := c.CoreV1().Pods(c.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		c.Log(err)
		return
	}
	for _, pod := range pods.Items {
		log, err := c.CoreV1().Pods(c.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		c.Logf("%s is %s, %v\n%s", pod.Name, pod.Status.Phase, err, log[max(0, len(log)-3000):])
	}
}

func (c *cluster) serviceNamed(name string) (service *corev1.Service) {
	c.Helper()
	c.await("an address of "+name, func() (err error) {
		service, err = c.CoreV1().Services(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
		if err == nil && len(service.Status.LoadBalancer.Ingress) == 0 {
			err = fmt.Errorf("it has none")
		}
		return err
	})
	return service
}

// awaitServed waits until a Service responds for the host, and starts a load.
func (c *cluster) awaitServed(service *corev1.Service) *load {
	c.Helper()
	address := net.JoinHostPort(service.Spec.ClusterIP, "80")
	c.awaitStatus(address, http.StatusOK)
	return c.startLoads(4, &harness.Caddy{Options: harness.Options{HTTP: address}}, c.host("shop"))
}
