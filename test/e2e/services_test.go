package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// serviceTest holds what the rows of TestKindsOfServices share. dns resolves the names of ExternalName Services.
type serviceTest struct {
	*conformance
	dns *names
}

// TestKindsOfServices checks each kind of Service other than a ClusterIP Service for the pods of a Deployment.
func TestKindsOfServices(t *testing.T) {
	c := newCluster(t)
	dns := c.serveNames()
	c.deploy("web", 1)
	c.awaitEndpoints("web", 1, 0)
	caddy := c.caddy(c.options(0, "resolvers "+dns.address))
	t.Run("kinds", func(t *testing.T) {
		for _, row := range []struct {
			name string
			test func(*serviceTest)
		}{
			{"headless", (*serviceTest).headless},
			{"without a selector", (*serviceTest).withoutSelector},
			{"dual-stack", (*serviceTest).dualStack},
			{"publishNotReadyAddresses", (*serviceTest).notReady},
			{"ExternalName", (*serviceTest).externalName},
			{"sessionAffinity ClientIP", (*serviceTest).sessionAffinity},
		} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				row.test(&serviceTest{&conformance{c.in(t), caddy}, dns})
			})
		}
	})
	c.checkNoReload(caddy)
}

// serves creates an Ingress for a Service, and waits until a pod of a Deployment responds.
func (s *serviceTest) serves(service, deployment string) {
	s.Helper()
	host := s.host(service)
	s.rules(service, []route{{host, prefix, "/", service}})
	s.answers(answer{host, "/", deployment})
}

// kindOfService creates a Service with the port http, after change has modified it.
func (s *serviceTest) kindOfService(name string, change func(*corev1.ServiceSpec)) {
	s.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("http")}},
	}}
	change(&service.Spec)
	_, err := s.CoreV1().Services(s.namespace).Create(s.Context(), service, metav1.CreateOptions{})
	s.must(err)
}

// slice creates an EndpointSlice for the port http of a Service.
func (s *serviceTest) slice(service string, kind discoveryv1.AddressType, port int, addresses ...string) {
	s.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: service + "-", Labels: map[string]string{discoveryv1.LabelServiceName: service},
		},
		AddressType: kind,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("http"), Port: ptr.To(int32(port))}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}})
	}
	_, err := s.DiscoveryV1().EndpointSlices(s.namespace).Create(s.Context(), slice, metav1.CreateOptions{})
	s.must(err)
}

// podIP returns the address of the only pod of the Deployment web.
func (s *serviceTest) podIP() string {
	s.Helper()
	pods, err := s.CoreV1().Pods(s.namespace).List(s.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	s.must(err)
	if len(pods.Items) != 1 || pods.Items[0].Status.PodIP == "" {
		s.Fatalf("no address, or more than one: %+v", pods.Items)
	}
	return pods.Items[0].Status.PodIP
}

func (s *serviceTest) headless() {
	s.kindOfService("headless", func(spec *corev1.ServiceSpec) {
		spec.ClusterIP = corev1.ClusterIPNone
		spec.Selector = map[string]string{"app": "web"}
	})
	s.serves("headless", "web")
}

func (s *serviceTest) withoutSelector() {
	s.kindOfService("selectorless", func(*corev1.ServiceSpec) {})
	s.slice("selectorless", discoveryv1.AddressTypeIPv4, 8080, s.podIP())
	s.serves("selectorless", "web")
}

// dualStack checks a Service with an IPv4 endpoint and an IPv6 endpoint. The first is a pod. The second is a server of
// the test, because pods of the testbed have only IPv4 addresses. In an IPv4 cluster, only a headless Service without a
// selector can have both.
func (s *serviceTest) dualStack() {
	port := s.serveIPv6("fd00:6b38:73::1")
	s.kindOfService("dual", func(spec *corev1.ServiceSpec) {
		spec.ClusterIP = corev1.ClusterIPNone
		spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
		spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	})
	s.slice("dual", discoveryv1.AddressTypeIPv4, 8080, s.podIP())
	s.slice("dual", discoveryv1.AddressTypeIPv6, port, "fd00:6b38:73::1")
	s.rules("dual", []route{{s.host("dual"), prefix, "/", "dual"}})
	s.awaitPods(s.caddy, s.host("dual"), 2)
	s.answers(answer{s.host("dual"), "/", "web"})
	s.answers(answer{s.host("dual"), "/", "six"})
}

// serveIPv6 adds an address to the network of the cluster, and runs a server there that responds like echo.
func (s *serviceTest) serveIPv6(ip string) (port int) {
	s.Helper()
	lo, err := netlink.LinkByName("lo")
	s.must(err)
	address, err := netlink.ParseAddr(ip + "/128")
	s.must(err)
	// Without duplicate address detection, the address can be used at once.
	const noDAD = 0x02
	address.Flags = noDAD
	s.must(netlink.AddrReplace(lo, address))
	listener, err := (&net.ListenConfig{}).Listen(s.Context(), "tcp6", net.JoinHostPort(ip, "0"))
	s.must(err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"pod": "six-" + ip})
	})}
	go func() { _ = server.Serve(listener) }()
	s.Cleanup(func() {
		_ = server.Close()
		_ = netlink.AddrDel(lo, address)
	})
	return listener.Addr().(*net.TCPAddr).Port
}

func (s *serviceTest) notReady() {
	s.deploy("unready", 1,
		func(spec *corev1.PodSpec) { spec.Containers[0].ReadinessProbe.HTTPGet.Path = "/status/503" })
	s.kindOfService("published", func(spec *corev1.ServiceSpec) {
		spec.Selector = map[string]string{"app": "unready"}
		spec.PublishNotReadyAddresses = true
	})
	s.serves("published", "unready")
	// The same pod is not an endpoint of a Service that does not publish unready addresses.
	s.rules("unready", []route{{s.host("unready"), prefix, "/", "unready"}})
	s.awaitCode(s.caddy, s.host("unready"), "/", http.StatusServiceUnavailable, "")
}

// externalName changes the address of a name, and checks that it is resolved again. An external name has no named
// ports, so the Ingress uses a port number.
func (s *serviceTest) externalName() {
	s.deploy("moved", 1)
	s.awaitEndpoints("moved", 1, 0)
	const name = "web.external.test"
	s.dns.set(name, s.podIP())
	s.kindOfService("external", func(spec *corev1.ServiceSpec) {
		*spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: name}
	})
	s.rules("external", []route{{s.host("external"), prefix, "/", "external"}}, withPort(8080))
	s.answers(answer{s.host("external"), "/", "web"})

	slices, err := s.DiscoveryV1().EndpointSlices(s.namespace).List(s.Context(),
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=moved"})
	s.must(err)
	s.dns.set(name, slices.Items[0].Endpoints[0].Addresses[0])
	s.answers(answer{s.host("external"), "/", "moved"})
}

// sessionAffinity sends requests from many loopback addresses. It checks that each client keeps its pod, and that not
// all clients have the same pod.
func (s *serviceTest) sessionAffinity() {
	s.deploy("sticky", 3)
	s.awaitEndpoints("sticky", 3, 0)
	s.kindOfService("affine", func(spec *corev1.ServiceSpec) {
		spec.Selector = map[string]string{"app": "sticky"}
		spec.SessionAffinity = corev1.ServiceAffinityClientIP
	})
	s.rules("affine", []route{{s.host("affine"), prefix, "/", "affine"}})
	s.awaitPodsFrom(3)
}

// awaitPodsFrom waits until all pods of the Deployment sticky get requests, and each client keeps its pod.
func (s *serviceTest) awaitPodsFrom(count int) {
	s.Helper()
	s.await("clients keep their pods", func() error {
		pods := map[string]bool{}
		for client := range 30 {
			pod, err := s.onePodFor(fmt.Sprintf("127.0.1.%d", client+1))
			if err != nil {
				return err
			}
			pods[pod] = true
		}
		if len(pods) != count {
			return fmt.Errorf("30 clients have the pods %v", pods)
		}
		return nil
	})
}

// onePodFor sends several requests from an address over new connections, and returns the pod that responded to all of
// them.
func (s *serviceTest) onePodFor(client string) (string, error) {
	transport := newTransport(s.caddy.HTTP)
	transport.DisableKeepAlives = true
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(client)}}
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, s.caddy.HTTP)
	}
	pod := ""
	for range 5 {
		r, err := ask(s.Context(), transport, "http://"+s.host("affine")+"/")
		switch {
		case err != nil:
			return "", err
		case r.code != http.StatusOK:
			return "", fmt.Errorf("answered %d", r.code)
		case pod != "" && r.pod != pod:
			return "", fmt.Errorf("client %s had pod %s, and then %s", client, pod, r.pod)
		}
		pod = r.pod
	}
	return pod, nil
}

// TestNamespaceSelector checks that a namespace is added and removed with its labels. In addition to the usual rights
// of deploy/cluster, the controller has only the rights that the chart adds for a selector.
func TestNamespaceSelector(t *testing.T) {
	c := newCluster(t)
	c.reader().run(
		"helm template selector charts/k8singress --namespace k8singress --show-only " +
			"templates/controller-rights.yaml --set " +
			"serviceAccount.create=false,serviceAccount.name=k8singress," +
			"controller.scope.namespaceSelector=team=shop --set k8singress.storage= | kubectl apply --filename -")
	t.Cleanup(func() {
		c.kubectl(context.Background(), "delete", "--namespace", "k8singress",
			"clusterrole,clusterrolebinding,role,rolebinding", "selector-k8singress")
	})
	c.deploy("web", 1)
	c.ingress("web", "web")
	c.awaitEndpoints("web", 1, 0)
	caddy := c.caddy(c.options(0, "namespace_selector team="+c.namespace))
	host := c.host("web")
	c.awaitCode(caddy, host, "/", http.StatusNotFound, "")
	c.label("team", c.namespace)
	c.awaitCode(caddy, host, "/", http.StatusOK, "web-")
	c.label("team", "another")
	c.awaitCode(caddy, host, "/", http.StatusNotFound, "")
	c.label("team", c.namespace)
	c.awaitCode(caddy, host, "/", http.StatusOK, "web-")
	c.checkNoReload(caddy)
}
