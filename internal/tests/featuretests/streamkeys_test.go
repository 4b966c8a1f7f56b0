package featuretests

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestStreamTries checks that by default a connection is retried at the working endpoint, and that with
// proxy-stream-next-upstream off, or with one try, some connections fail.
func TestStreamTries(t *testing.T) {
	f := newFleet(t, 1, nil)
	port := fixture.Port(t)
	in := start(t, class+strings.Replace(service("one", f.port, f.ip(1), f.ip(0)), "metadata: {name: one}",
		`metadata: {name: one, annotations: {k8singress.io/tcp-ports: "`+port+`:80"}}`, 1), servicePorts,
		"configmap default/global")
	for _, keys := range []string{"proxy-stream-next-upstream=false", "proxy-stream-next-upstream-tries=1"} {
		in.globalKeys(keys)
		in.eventually("a connection that ends with "+keys, func() error {
			if answer, err := tryTCP(port); err == nil {
				return fmt.Errorf("it is answered with %q", answer)
			}
			return nil
		})
		in.globalKeys()
		in.overTCP(port)
		for range 10 {
			if _, err := tryTCP(port); err != nil {
				t.Errorf("by default, a connection ends: %v", err)
			}
		}
	}
}

// TestStreamResponses checks that a UDP session ends after its response, so that the next query comes from another
// port, if the Service or the ConfigMap expects one response, and that it continues otherwise.
func TestStreamResponses(t *testing.T) {
	ip, endpointPort := hostPort(t, udpEndpoint(t))
	port, short := fixture.Port(t), fixture.Port(t)
	in := start(t, class+overUDP(exposed("one", endpointPort, ip, "udp-ports: "+port+":80")+
		exposed("two", endpointPort, ip, "udp-ports: "+short+":80", "stream-responses: 1"), endpointPort),
		"stream_bind 127.0.0.1", "service_udp_ports 1024-65535", "configmap default/global")
	in.globalKeys("proxy-stream-timeout=1h")
	in.sessionsEnd(short)
	var client net.Conn
	in.eventually("the UDP port", func() (err error) {
		client, err = askUDP(t, port)
		return err
	})
	first := questioned(t, client)
	for range 3 {
		if next := questioned(t, client); next != first {
			t.Errorf("without the key, a question comes from %s after one from %s", next, first)
		}
	}
	in.globalKeys("proxy-stream-timeout=1h", "proxy-stream-responses=1")
	in.sessionsEnd(port)
}

// sessionsEnd waits until the sessions of a UDP port end after one response.
func (in *ingress) sessionsEnd(port string) {
	in.Helper()
	in.eventually("another session", func() error {
		client, err := askUDP(in, port)
		if err != nil {
			return err
		}
		if first, next := questioned(in, client), questioned(in, client); first == next {
			return fmt.Errorf("two questions come from %s", first)
		}
		return nil
	})
}

// udpEndpoint starts an endpoint that responds to each datagram with the address of its sender.
func udpEndpoint(t *testing.T) net.Addr {
	t.Helper()
	endpoint, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	go func() {
		question := make([]byte, 100)
		for {
			_, from, err := endpoint.ReadFrom(question)
			if err != nil {
				return
			}
			_, _ = endpoint.WriteTo([]byte(from.String()), from)
		}
	}()
	return endpoint.LocalAddr()
}

// overUDP changes the ports of a Service to UDP.
func overUDP(service, endpointPort string) string {
	return strings.NewReplacer("port: 80}", "port: 80, protocol: UDP}", "port: "+endpointPort+"}",
		"port: "+endpointPort+", protocol: UDP}").
		Replace(service)
}

// askUDP returns a client of a UDP port that has received a response.
func askUDP(t testing.TB, port string) (net.Conn, error) {
	t.Helper()
	conn, err := net.Dial("udp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err = conn.Write([]byte("?")); err == nil {
		_, err = conn.Read(make([]byte, 100))
	}
	_ = conn.SetDeadline(time.Now().Add(deadline))
	return conn, err
}

// questioned sends a query, and returns the address from which the endpoint received it.
func questioned(t testing.TB, client net.Conn) string {
	t.Helper()
	if _, err := client.Write([]byte("?")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 100)
	n, err := client.Read(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer[:n])
}

// TestProxyHeaderTimeout checks that a connection without a PROXY header ends after the timeout that was in effect
// when it was accepted: one second for one connection, ten minutes for the other.
func TestProxyHeaderTimeout(t *testing.T) {
	ip, port := backend(t, "one")
	in := start(t, class+service("one", port, ip)+rule("a", "shop.example", "Prefix", "/", "one"),
		"configmap default/global")
	in.globalKeys("use-proxy-protocol=true", "proxy-protocol-header-timeout=10m")
	patient := (&balanced{ingress: in}).dial("")
	// Responses on another connection show that the slow one has been accepted.
	const header = "PROXY TCP4 203.0.113.7 198.51.100.1 4660 443\r\n"
	if got := (&balanced{ingress: in}).dial(header).ask(); got != "200 one /" {
		t.Fatalf("got %s", got)
	}
	in.globalKeys("use-proxy-protocol=true", "proxy-protocol-header-timeout=1s")
	hasty := in.connect()
	hasty.ends()
	patient.send(header)
	if got := patient.ask(); got != "200 one /" {
		t.Errorf("the connection that may wait: %s", got)
	}
}
