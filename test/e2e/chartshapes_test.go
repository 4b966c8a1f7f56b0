package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// release is a release of the chart in a shape of testdata/shapes.yaml. The class and the Ingress for the release have
// the same name.
type release struct {
	*cluster
	name, notes string
}

// TestChartShapes installs the chart in each shape, several at the same time, and checks that each works through its
// Service.
func TestChartShapes(t *testing.T) {
	c := newCluster(t)
	c.deploy("web", 1)
	c.udpService("packets", "web")
	elsewhere := c.namespace + "-streams"
	c.namespaceFor(elsewhere)
	t.Cleanup(func() {
		if err := c.CoreV1().Namespaces().Delete(context.Background(), elsewhere, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for shape, check := range map[string]func(*release){
		"daemonset":         (*release).daemonSet,
		"both":              func(r *release) { r.awaitEndpoints(r.controller(), 1+nodes, 0) },
		"node-ports":        (*release).nodePorts,
		"host-ports":        (*release).hostPorts,
		"streams-elsewhere": (*release).streamsElsewhere,
		"internal":          (*release).internal,
		"proxy-protocol":    (*release).proxyProtocol,
		"headers":           (*release).headers,
		"without-class":     (*release).withoutClass,
		"ignored":           (*release).ignored,
		"least":             (*release).least,
	} {
		t.Run(shape, func(t *testing.T) {
			t.Parallel()
			r := c.in(t).release(shape)
			check(r)
		})
	}
}

// nodes is the number of nodes in the cluster.
const nodes = 2

// release installs the chart in a shape until the test ends.
func (c *cluster) release(shape string) *release {
	c.Helper()
	r := &release{cluster: c, name: shape}
	class := c.namespace + "-" + shape
	var all map[string]any
	text, err := os.ReadFile("testdata/shapes.yaml")
	c.must(err)
	c.must(yaml.UnmarshalStrict([]byte(strings.NewReplacer("RELEASE", class, "NAMESPACE",
		c.namespace).Replace(string(text))), &all))
	if text, err = yaml.Marshal(all[shape]); all[shape] == nil {
		c.Fatalf("shapes.yaml has no %s", shape)
	}
	c.must(err)
	file := filepath.Join(c.TempDir(), "values.yaml")
	c.must(os.WriteFile(file, text, 0o600))
	c.ingress(shape, "web", withClass(class))
	c.Cleanup(func() {
		if out, err := c.helmCommand(context.Background(), "uninstall", shape).CombinedOutput(); err != nil {
			c.Errorf("helm uninstall: %v\n%s", err, out)
		}
	})
	r.notes = c.helm("install", shape, ownChart, "--wait", "--timeout=3m", "--values", file,
		"--set", "controller.replicaCount=1", "--set", "controller.readinessProbe.periodSeconds=1", "--set",
		"k8singress.options.shutdown_delay=1s",
		"--set", "controller.ingressClassResource.name="+class, "--set",
		"controller.ingressClassResource.controllerValue=k8s.io/"+class)
	return r
}

// controller returns the name of the Service and of the workload.
func (r *release) controller() string { return r.name + "-k8singress-controller" }

// address returns the ClusterIP of a Service with a port.
func (r *release) address(service, port string) string {
	r.Helper()
	object, err := r.CoreV1().Services(r.namespace).Get(r.Context(), service, metav1.GetOptions{})
	r.must(err)
	return net.JoinHostPort(object.Spec.ClusterIP, port)
}

// awaitSeen sends requests to an Ingress until a pod responds. It returns the headers that the pod received, and the
// headers of the response.
func (r *release) awaitSeen(transport *http.Transport, host string) (seen, answered http.Header) {
	r.Helper()
	client := &http.Client{Transport: transport, Timeout: deadline}
	defer transport.CloseIdleConnections()
	r.await("an answer for "+host, func() error {
		response, err := client.Get("http://" + host + "/")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		if err != nil {
			return err
		}
		var request struct{ Headers http.Header }
		err = json.Unmarshal(body, &request)
		seen, answered = request.Headers, response.Header
		return err
	})
	return seen, answered
}

// awaitAnswer waits until a Service responds for the Ingress of the release.
func (r *release) awaitAnswer(service string) {
	r.Helper()
	r.awaitSeen(newTransport(r.address(service, "80")), r.host(r.name))
}

// daemonSet checks that there is a pod on each node, and that a Service exposes their metrics.
func (r *release) daemonSet() {
	r.awaitAnswer(r.controller())
	r.awaitEndpoints(r.controller(), nodes, 0)
	text := r.body(r.address(r.controller()+"-metrics", "10254"), "http://metrics/metrics")
	if !strings.Contains(text, "k8singress_") {
		r.Errorf("the Service of the metrics answers %.300q", text)
	}
}

// nodePorts checks that the Service uses the node ports in the values.
func (r *release) nodePorts() {
	r.awaitAnswer(r.controller())
	r.awaitStreams()
	service, err := r.CoreV1().Services(r.namespace).Get(r.Context(), r.controller(), metav1.GetOptions{})
	r.must(err)
	got := map[int32]int32{}
	for _, port := range service.Spec.Ports {
		got[port.Port] = port.NodePort
	}
	if want := map[int32]int32{80: 30080, 443: 30443, 9000: 30090, 9001: 30091}; fmt.Sprint(got) != fmt.Sprint(want) {
		r.Errorf("the ports of the nodes are %v, want %v", got, want)
	}
}

// awaitStreams waits until TCP 9000 and UDP 9001 of the Service lead to a pod.
func (r *release) awaitStreams() {
	r.Helper()
	for network, port := range map[string]string{"tcp": "9000", "udp": "9001"} {
		r.awaitEchoAt(network, r.address(r.controller(), port))
	}
}

// hostPorts checks that clients can reach the pods at each node, and that the status of the Ingress has the addresses
// of all nodes.
func (r *release) hostPorts() {
	want := map[string]bool{}
	for i := range nodes {
		address := r.internalIP(fmt.Sprintf("node-%d", i))
		want[address] = true
		r.awaitSeen(newTransport(net.JoinHostPort(address, "80")), r.host(r.name))
	}
	r.await("the addresses of the nodes in the status", func() error {
		object, err := r.NetworkingV1().Ingresses(r.namespace).Get(r.Context(), r.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := map[string]bool{}
		for _, ingress := range object.Status.LoadBalancer.Ingress {
			got[ingress.IP] = true
		}
		if !maps.Equal(got, want) {
			return fmt.Errorf("it has %v, and the nodes %v", got, want)
		}
		return nil
	})
}

// streamsElsewhere checks that the ConfigMaps for TCP and UDP ports can be in another namespace, in which the chart
// does not create them.
func (r *release) streamsElsewhere() {
	for name, entry := range map[string]string{"tcp": "9000=web", "udp": "9001=packets"} {
		port, service, _ := strings.Cut(entry, "=")
		r.entriesIn(r.namespace+"-streams",
			r.name+"-k8singress-"+name)(map[string]string{port: r.to(service) + ":9000"})
	}
	r.awaitAnswer(r.controller())
	r.awaitStreams()
}

// internal checks that the release has only the internal Service, and that the status of the Ingress has its address.
func (r *release) internal() {
	service := r.serviceNamed(r.controller() + "-internal")
	r.awaitAnswer(service.Name)
	r.awaitAddress(r.name, service.Status.LoadBalancer.Ingress[0].IP)
}

// proxyProtocol checks that the endpoint gets the client address from the header, and that clients without a header are
// rejected.
func (r *release) proxyProtocol() {
	address := r.address(r.controller(), "80")
	transport := newTransport(address)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, host string) (net.Conn, error) {
		conn, err := dial(ctx, network, host)
		if err == nil {
			_, err = io.WriteString(conn, "PROXY TCP4 203.0.113.9 203.0.113.10 40000 80\r\n")
		}
		return conn, err
	}
	if seen, _ := r.awaitSeen(transport, r.host(r.name)); seen.Get("X-Real-Ip") != "203.0.113.9" {
		r.Errorf("the endpoint sees %v", seen)
	}
	for range 5 {
		r.checkRefused(address)
	}
}

// checkRefused checks that a request without the header gets 400 or a closed connection.
func (r *release) checkRefused(address string) {
	r.Helper()
	conn, err := net.Dial("tcp", address)
	r.must(err)
	defer conn.Close()
	r.must(conn.SetDeadline(time.Now().Add(deadline)))
	// The server may close the connection before the whole request is written.
	_, _ = fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", r.host(r.name))
	answer, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) || len(answer) > 0 &&
		!strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
		r.Errorf("a client without the header gets %.300q, %v", answer, err)
	}
}

func (r *release) headers() {
	seen, answered := r.awaitSeen(newTransport(r.address(r.controller(), "80")), r.host(r.name))
	if seen.Get("X-Region") != "eu" || answered.Get("X-Frame-Options") != "deny" {
		r.Errorf("the endpoint sees %v, and the client %v", seen, answered)
	}
}

// withoutClass checks that an Ingress without a class is served, in addition to Ingresses of the release's class.
func (r *release) withoutClass() {
	r.awaitAnswer(r.controller())
	r.ingress("classless", "web", func(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil })
	r.awaitSeen(newTransport(r.address(r.controller(), "80")), r.host("classless"))
}

func (r *release) ignored() {
	r.awaitAnswer(r.controller())
	for _, says := range []string{"so there are no Jobs", "there are no nginx modules to load",
		"Kubernetes has no PodSecurityPolicy"} {
		if !strings.Contains(r.notes, says) {
			r.Errorf("NOTES lacks %q:\n%s", says, r.notes)
		}
	}
}

// least checks a release with the least rights. Its flags name objects that the chart does not create, and classes are
// identified by their names.
func (r *release) least() {
	r.entriesIn(r.namespace+"-streams", "options")(map[string]string{"server-tokens": "true"})
	r.awaitAnswer(r.controller())
	if _, err := r.CoordinationV1().Leases(r.namespace).Get(r.Context(), "k8singress-elected",
		metav1.GetOptions{}); err != nil {
		r.Error(err)
	}
	pods, err := r.CoreV1().Pods(r.namespace).List(r.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + r.name})
	r.must(err)
	for _, pod := range pods.Items {
		log, err := r.CoreV1().Pods(r.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(r.Context())
		r.must(err)
		lacks := slices.DeleteFunc(refusedIn(string(log)),
			func(asked string) bool { return strings.HasSuffix(asked, " ingressclasses") })
		if len(lacks) > 0 {
			r.Errorf("the rights lack %q", lacks)
		}
	}
}
