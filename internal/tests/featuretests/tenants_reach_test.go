package featuretests

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// insideSpellings are addresses of this machine, of its link, of several machines, or of a cloud's metadata.
var insideSpellings = []string{
	"127.0.0.1", "127.9.9.9", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost", "0.0.0.0", "0.1.2.3",
	"255.255.255.255",
	"224.0.0.1", "169.254.169.254", "169.254.1.1", "100.100.100.200", "168.63.129.16", "::1", "::", "::ffff:127.0.0.1",
	"::127.0.0.1",
	"64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::", "fe80::1%lo", "ff02::1", "fd00:ec2::254",
	"::ffff:169.254.169.254",
}

// waysOut maps hosts to the annotations of their Ingresses, each of which sends requests to the endpoint in another
// way.
var waysOut = map[string]string{
	"http": "", "https": "nginx.ingress.kubernetes.io/backend-protocol: HTTPS",
	"grpc":   "nginx.ingress.kubernetes.io/backend-protocol: GRPC",
	"grpcs":  "nginx.ingress.kubernetes.io/backend-protocol: GRPCS",
	"fcgi":   "nginx.ingress.kubernetes.io/backend-protocol: FCGI",
	"passed": `nginx.ingress.kubernetes.io/ssl-passthrough: "true"`,
	"health": `k8singress.io/health-check-path: /, k8singress.io/health-check-interval: 1s`,
}

// inside is a server on all addresses of this machine, which a tenant must not reach.
type inside struct {
	port string
	hits atomic.Int64
}

func serveInside(t *testing.T) *inside {
	t.Helper()
	s := &inside{port: fixture.Port(t)}
	listener, err := net.Listen("tcp", ":"+s.port)
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", ":"+s.port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close(); packets.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			s.hits.Add(1)
			conn.Close()
		}
	}()
	go func() {
		buffer := make([]byte, 100)
		for {
			if _, _, err := packets.ReadFrom(buffer); err != nil {
				return
			}
			s.hits.Add(1)
		}
	}()
	return s
}

// leadsInside returns a document whose backends all have one endpoint, at an address that leadTo replaces, and the
// ports that the document opens.
func leadsInside(t *testing.T, port string) (in *ingress, document []byte, tcp, udp string) {
	t.Helper()
	tcp, udp = fixture.Port(t), fixture.Port(t)
	manifests := class + service("web", port, "192.0.2.1") + configMap("tcp", fmt.Sprintf("%q: default/web:80", tcp)) +
		configMap("udp", fmt.Sprintf("%q: default/dns:53", udp)) + fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: dns}
spec: {ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: dns-1, labels: {kubernetes.io/service-name: dns}}
addressType: IPv4
ports: [{name: dns, port: %s, protocol: UDP}]
endpoints: [{addresses: [192.0.2.1]}]
`, port)
	for name, annotation := range waysOut {
		manifests += service(name, port, "192.0.2.1") +
			strings.Replace(rule(name, name+".example", "Prefix", "/", name),
				"{name: "+name+"}", "{name: "+name+", annotations: {"+annotation+"}}", 1)
	}
	options := "ssl_passthrough\nstream_bind 127.0.0.1\ntcp_services default/tcp\nudp_services " +
		"default/udp\nreach_allow 192.0.2.0/24"
	in = start(t, manifests, options)
	return in, in.document(), tcp, udp
}

// leave sends requests over each way out, and returns the HTTP statuses.
func (in *ingress) leave(tcp, udp string) (statuses map[string]int) {
	in.Helper()
	statuses = map[string]int{}
	for name := range waysOut {
		if name != "passed" {
			statuses[name] = in.get(name+".example", "/").status
		}
	}
	// The port may be opened a moment after the document was accepted.
	conn := in.accepted(net.JoinHostPort("127.0.0.1", tcp))
	// It is closed without a response, as the connection to the server inside is.
	_, _ = io.Copy(io.Discard, conn)
	client := tls.Client(connect(in, in.https), &tls.Config{ServerName: "passed.example", InsecureSkipVerify: true})
	if client.Handshake() == nil {
		in.Error("TLS that is passed through ends here")
	}
	datagram, err := net.Dial("udp", net.JoinHostPort("127.0.0.1", udp))
	if err != nil {
		in.Fatal(err)
	}
	defer datagram.Close()
	if _, err := datagram.Write([]byte("?")); err != nil {
		in.Error(err)
	}
	return statuses
}

// TestTenant14Spellings checks that no spelling of an internal address is reached by any outgoing connection. The test
// uses a document, which passes the spellings to the dialers unchanged, since most are not valid addresses in a
// manifest.
func TestTenant14Spellings(t *testing.T) {
	server := serveInside(t)
	in, document, tcp, udp := leadsInside(t, server.port)
	const options = "ssl_passthrough\nstream_bind 127.0.0.1\nsource none\n"
	in.load(options + "reach_allow 192.0.2.0/24")
	for _, spelling := range insideSpellings {
		in.leadTo(document, server.port, spelling)
		_, err := netip.ParseAddr(spelling)
		for name, status := range in.leave(tcp, udp) {
			// A name that Go accepts may have no address.
			if status != http.StatusServiceUnavailable && (err == nil || status != http.StatusBadGateway) {
				t.Errorf("%s by %s: the answer is %d", spelling, name, status)
			}
		}
	}
	if n := server.hits.Load(); n != 0 {
		t.Errorf("%d connections and datagrams came in", n)
	}

	// Addresses that the administrator allows are reached by each of them.
	in.load(options + "reach_allow 127.0.0.0/8")
	in.leadTo(document, server.port, "127.0.0.1")
	for name, status := range in.leave(tcp, udp) {
		if status != http.StatusBadGateway {
			t.Errorf("by %s: the answer is %d", name, status)
		}
	}
	in.eventually("a connection for each way out, and a datagram", func() error {
		if n := server.hits.Load(); n < int64(len(waysOut)+2) {
			return fmt.Errorf("%d came in", n)
		}
		return nil
	})
}

// leadTo serves a document with another address for all endpoints.
func (in *ingress) leadTo(document []byte, port, address string) {
	in.Helper()
	to := bytes.ReplaceAll(document, []byte("192.0.2.1:"+port), []byte(net.JoinHostPort(address, port)))
	if status, text := in.put(to); status != http.StatusOK {
		in.Fatalf("%d %s", status, text)
	}
}

// TestTenant14 checks that an EndpointSlice with the address of the admin API, or another address of the controller's
// listeners, is not used, even if loopback is allowed. Its author gets a warning.
func TestTenant14(t *testing.T) {
	health, tcp := fixture.Address(t), fixture.Port(t)
	in := newIngress(t)
	ways := map[string]string{"admin": in.admin, "http": in.http, "https": in.https, "health": health,
		"port": net.JoinHostPort("127.0.0.1", tcp)}
	manifests := class
	for name, address := range ways {
		ip, port, _ := net.SplitHostPort(address)
		manifests += service(name, port, ip) + strings.Replace(rule(name, name+".example", "Prefix", "/", name),
			"{name: "+name+"}",
			fmt.Sprintf("{name: %s, annotations: {nginx.ingress.kubernetes.io/upstream-vhost: %q}}", name, address), 1)
	}
	_, port, _ := net.SplitHostPort(in.admin)
	manifests += service("any", port, "0.0.0.0", "127.0.0.2") + rule("any", "any.example", "Prefix", "/", "any")
	// The port would lead to the admin API, too.
	manifests += configMap("tcp", fmt.Sprintf("%q: default/admin:80", tcp))
	in.write("manifests.yaml", manifests)
	options := fmt.Sprintf("manifests %s\nhealth %s\nstream_bind 127.0.0.1\ntcp_services default/tcp\n",
		in.folder, health)
	in.load(options + "reach_allow 127.0.0.0/8 0.0.0.0/8 ::1/128")
	in.awaitReady()
	for name := range ways {
		in.becomes(name+".example", "/config/admin", http.StatusServiceUnavailable, "")
		in.awaitVerdict("Ingress/default/"+name, "AddressNotAllowed", "an address of the controller itself")
	}
	want := `k8singress_refused_endpoints{backend="default/admin/80",reason="an address of the controller itself"} 1`
	if !strings.Contains(in.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
	// The admin API listens on one address only. Nothing listens on the same port of other addresses, but 0.0.0.0 may
	// mean any of them.
	in.expect("any.example", "/config/admin", http.StatusBadGateway, "")
	conn := connect(t, net.JoinHostPort("127.0.0.1", tcp))
	fmt.Fprintf(conn, "GET /config/admin HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", in.admin)
	if got, _ := io.ReadAll(conn); len(got) > 0 {
		t.Errorf("the port answers %q", got)
	}

	// Without the option, the slices are rejected as an API server would.
	in.load(options + "reach_deny 192.0.2.0/24\nreach_allow 198.51.100.0/24")
	in.eventually("the verdict on a slice", func() error {
		if got := in.message("EndpointSlice/default/admin-1", "AddressNotAllowed"); !strings.Contains(got,
			"127.0.0.1 is left out (loopback)") {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	in.becomes("any.example", "/", http.StatusServiceUnavailable, "")
}

// TestTenant17OwnService checks that an EndpointSlice with the address of the controller's own Service, its load
// balancer, or its pods is not used. Otherwise requests would loop, and arrive with the address of a pod.
func TestTenant17OwnService(t *testing.T) {
	// The server that replaces kube-proxy and another replica responds itself.
	ip, port := backend(t, "inside")
	_, elsewhere := backend(t, "other")
	own := fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: own, namespace: ingress}
spec:
  type: LoadBalancer
  clusterIP: %q
  clusterIPs: [%[1]q]
  externalIPs: [198.51.100.7]
  ports: [{name: http, port: %[2]s, targetPort: 8080}]
status: {loadBalancer: {ingress: [{ip: 198.51.100.8}, {hostname: lb.example}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: own-1, namespace: ingress, labels: {kubernetes.io/service-name: own}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [198.51.100.9]}]
`, ip, port)
	hostile := ""
	for name, to := range map[string][2]string{
		"virtual": {port, ip}, "external": {port, "198.51.100.7"}, "balancer": {port, "198.51.100.8"},
		"pod": {"8080", "198.51.100.9"},
	} {
		hostile += service(name, to[0], to[1]) + rule(name, name+".example", "Prefix", "/", name)
	}
	beside := service("beside", elsewhere, ip) + rule("beside", "beside.example", "Prefix", "/", "beside")
	in := start(t, class+tenant("b", 10, hostile, beside), "publish_service ingress/own")
	in.becomes("virtual.example", "/", http.StatusOK, "inside /")
	in.write("own.yaml", own)
	for _, name := range []string{"virtual", "external", "balancer", "pod"} {
		in.becomes(name+".example", "/", http.StatusServiceUnavailable, "")
		in.awaitVerdict("Ingress/b/"+name, "AddressNotAllowed", "an address of the controller itself")
	}
	in.expect("beside.example", "/", http.StatusOK, "other /")
	in.remove("own.yaml")
	in.becomes("virtual.example", "/", http.StatusOK, "inside /")
}
