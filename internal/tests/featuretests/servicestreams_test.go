package featuretests

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// exposed returns the Service "default/NAME" of service with annotations, each "name: value" without its prefix.
func exposed(name, port, ip string, annotations ...string) string {
	all := make([]string, 0, len(annotations))
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, ": ")
		all = append(all, fmt.Sprintf("k8singress.io/%s: %q", key, value))
	}
	return strings.Replace(service(name, port, ip), "metadata: {name: "+name+"}",
		"metadata: {name: "+name+", annotations: {"+strings.Join(all, ", ")+"}}", 1)
}

const servicePorts = "stream_bind 127.0.0.1\nservice_tcp_ports 1024-65535"

// TestServiceOpensAPort checks that an annotation opens and closes a port without a reload, and does not affect other
// ports.
func TestServiceOpensAPort(t *testing.T) {
	ip, backendPort := backend(t, "one")
	first, second := fixture.Port(t), fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+first+":http"), servicePorts)
	in.overTCP(first)
	reloads := in.reloads()
	open := in.hold(first)

	in.write("manifests.yaml", class+exposed("one", backendPort, ip, "tcp-ports: "+first+":http, "+second+":80"))
	in.overTCP(second)
	in.write("manifests.yaml", class+exposed("one", backendPort, ip, "tcp-ports: "+second+":80"))
	in.closes(first)
	if got := in.overTCP(second); got != "one /tcp" {
		t.Errorf("the second port answers %q", got)
	}
	open.ask("one /held")
	in.write("manifests.yaml", class+service("one", backendPort, ip))
	in.closes(second)
	if now := in.reloads(); now != reloads {
		t.Errorf("Caddy was made to reload: %q, then %q", reloads, now)
	}
}

// held is a connection that stays open between requests.
type held struct {
	testing.TB
	net.Conn
	reader *bufio.Reader
}

func (in *ingress) hold(port string) *held {
	in.Helper()
	conn := in.accepted("127.0.0.1:" + port)
	h := &held{in.TB, conn, bufio.NewReader(conn)}
	h.ask("")
	return h
}

// ask sends a request over the connection, and fails the test unless the response is want, if that is not empty.
func (h *held) ask(want string) {
	h.Helper()
	if _, err := io.WriteString(h.Conn, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		h.Fatal(err)
	}
	response, err := http.ReadResponse(h.reader, nil)
	if err != nil {
		h.Fatal(err)
	}
	if got := read(h.TB, response).body; want != "" && got != want {
		h.Errorf("the connection answers %q, want %q", got, want)
	}
}

// TestServicePortConflicts checks that a port belongs to one Service, that the other Service gets a warning, and that
// it gets the port when the first is deleted.
func TestServicePortConflicts(t *testing.T) {
	ip, onePort := backend(t, "one")
	_, twoPort := backend(t, "two")
	shared, own, listed := fixture.Port(t), fixture.Port(t), fixture.Port(t)
	two := exposed("two", twoPort, ip, "tcp-ports: "+shared+":80, "+own+":80, "+listed+":80")
	in := newIngress(t)
	in.write("one.yaml", exposed("one", onePort, ip, "tcp-ports: "+shared+":80"))
	in.write("two.yaml", class+two+tcpServices(fmt.Sprintf(`%q: "default/one:80"`, listed)))
	in.load("manifests " + in.folder + "\ntcp_services default/tcp-services\n" + servicePorts)
	in.awaitReady()
	for port, want := range map[string]string{shared: "one /tcp", own: "two /tcp", listed: "one /tcp"} {
		if got := in.overTCP(port); got != want {
			t.Errorf("port %s answers %q, want %q", port, got, want)
		}
	}
	want := []string{
		"the TCP port " + shared +
			" is already used by Service/default/one (which is treated as older because of its name: neither has a " +
			"creationTimestamp): choose another port",
		"an entry of the ConfigMap in the option tcp_services already uses the TCP port " + listed +
			": choose another port",
	}
	if got := in.messages("Service/default/two", "PortConflict"); !slices.Equal(got, want) {
		t.Errorf("it is told %q", got)
	}
	in.write("one.yaml", service("one", onePort, ip))
	in.leadsTo(shared, "two /tcp")
}

// TestServicePortNotAllowed checks that no port opens unless the administrator allows it.
func TestServicePortNotAllowed(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	manifests := class + exposed("one", backendPort, ip, "tcp-ports: "+port+":80")
	in := start(t, manifests, "stream_bind 127.0.0.1")
	for _, options := range []string{
		"", "service_tcp_ports 1-10", "service_tcp_ports 1-65535\nservice_port_namespaces shop",
		"service_udp_ports 1-65535",
	} {
		in.load("manifests " + in.folder + "\nstream_bind 127.0.0.1\n" + options)
		in.awaitReady()
		in.eventually("a word to the Service", func() error {
			if got := in.reasons("Service/default/one"); !slices.Equal(got, []string{"PortNotAllowed"}) {
				return fmt.Errorf("reasons are %v", got)
			}
			return nil
		})
		if _, err := tryTCP(port); err == nil {
			t.Errorf("with %q the port is open", options)
		}
	}
	in.load("manifests " + in.folder + "\nservice_port_namespaces def*\n" + servicePorts)
	if got := in.overTCP(port); got != "one /tcp" {
		t.Errorf("the port answers %q", got)
	}
}

// TestServicePortInUse checks that a port of another process is reported to the Service, and retried.
func TestServicePortInUse(t *testing.T) {
	ip, backendPort := backend(t, "one")
	holder, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, taken, _ := net.SplitHostPort(holder.Addr().String())
	good := fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+taken+":80, "+good+":80"), servicePorts)
	if got := in.overTCP(good); got != "one /tcp" {
		t.Errorf("the free port answers %q", got)
	}
	if got := in.reasons("Service/default/one"); !slices.Equal(got, []string{"PortConflict"}) {
		t.Errorf("reasons are %v", got)
	}
	response, err := in.admins.Get("http://" + in.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	const refused = "k8singress_refused_ports{reason=\"PortConflict\"} 1\n"
	if body := read(t, response).body; !strings.Contains(body, refused) {
		t.Errorf("the metrics do not say %s", refused)
	}
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	if got := in.overTCP(taken); got != "one /tcp" {
		t.Errorf("the port answers %q", got)
	}
	in.eventually("nothing more to say", func() error {
		if got := in.reasons("Service/default/one"); len(got) > 0 {
			return fmt.Errorf("reasons are %v", got)
		}
		return nil
	})
}

// TestPortOfAnExternalName checks that a stream may lead to a DNS name, but not to internal addresses.
// TestExternalName checks that it follows the name's addresses.
func TestPortOfAnExternalName(t *testing.T) {
	backendPort, dnsServer := twins(t), serveNames(t)
	dnsServer.set("db.example", "127.0.0.1")
	port := fixture.Port(t)
	manifests := class + external("db", "db.example") +
		tcpServices(fmt.Sprintf(`%q: "default/db:%s"`, port, backendPort))
	options := "\ntcp_services default/tcp-services\nstream_bind 127.0.0.1\nresolvers " + dnsServer.address
	in := start(t, manifests, "external_names all"+options)
	in.leadsTo(port, "127.0.0.1 /tcp")

	in.load("manifests " + in.folder + options)
	in.eventually("a word on the address", func() error {
		got := in.messages("ConfigMap/default/tcp-services", "NoEndpoints")
		if len(got) != 1 || !strings.Contains(got[0], "127.0.0.1 (loopback)") ||
			!strings.Contains(got[0], "so connections are closed") {
			return fmt.Errorf("%q", got)
		}
		return nil
	})
	if got, err := tryTCP(port); err == nil {
		t.Errorf("a name of this machine answers %q", got)
	}
}

// TestStreamKeysAreLive checks that a change of a ConfigMap key or an annotation takes effect without a reload and
// closes no connection.
func TestStreamKeysAreLive(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port := fixture.Port(t)
	one := exposed("one", backendPort, ip, "tcp-ports: "+port+":80")
	in := start(t, class+one+global("proxy-stream-timeout: 10m"), servicePorts, "configmap default/global")
	in.overTCP(port)
	reloads, generation := in.reloads(), in.status().Generation
	open := in.hold(port)
	for _, manifests := range []string{
		class + one + global("proxy-stream-timeout: 20m", `proxy-stream-next-upstream: "false"`),
		class + exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-idle-timeout: 1h") +
			global("proxy-stream-timeout: 20m"),
	} {
		in.write("manifests.yaml", manifests)
		in.eventually("another generation", func() error {
			if now := in.status().Generation; now == generation {
				return fmt.Errorf("it is still %d", now)
			}
			return nil
		})
		generation = in.status().Generation
		open.ask("one /held")
		if got := in.overTCP(port); got != "one /tcp" {
			t.Errorf("the port answers %q", got)
		}
	}
	if now := in.reloads(); now != reloads {
		t.Errorf("Caddy was made to reload: %q, then %q", reloads, now)
	}
}

// TestServicePortStaysClosed checks that a port rejects all clients while one of its guards is unreadable.
func TestServicePortStaysClosed(t *testing.T) {
	ip, backendPort := backend(t, "one")
	port, other := fixture.Port(t), fixture.Port(t)
	in := start(t, class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80", "stream-tls-secret: Not A Name")+
		exposed("two", backendPort, ip, "tcp-ports: "+other+":80"), servicePorts)
	if got := in.overTCP(other); got != "one /tcp" {
		t.Errorf("the other port answers %q", got)
	}
	dialer := net.Dialer{}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if conn, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+port); err == nil {
		conn.Close()
		t.Error("the port is open")
	}
	in.write("manifests.yaml", class+exposed("one", backendPort, ip, "tcp-ports: "+port+":80"))
	if got := in.overTCP(port); got != "one /tcp" {
		t.Errorf("the port answers %q", got)
	}
}
