package featuretests

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// external returns a Service "default/NAME" of type ExternalName for a DNS name.
func external(name, host string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {type: ExternalName, externalName: %q}
`, name, host)
}

// names is a DNS server.
type names struct {
	address string
	stop    func()

	mu        sync.Mutex
	addresses map[string][]string
}

func serveNames(t *testing.T) *names {
	t.Helper()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &names{address: packets.LocalAddr().String(), addresses: map[string][]string{}}
	started, ended := make(chan struct{}), make(chan struct{})
	server := &dns.Server{PacketConn: packets, Handler: n, NotifyStartedFunc: func() { close(started) }}
	go func() {
		defer close(ended)
		if err := server.ActivateAndServe(); err != nil {
			t.Error(err)
		}
	}()
	fixture.Receive(t, "the start of the name server", started)
	n.stop = sync.OnceFunc(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
		<-ended
	})
	t.Cleanup(n.stop)
	return n
}

func (n *names) set(name string, addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses[name+"."] = addresses
}

// ServeDNS responds to queries for IPv4 addresses, with a time to live that makes clients query again as soon as
// possible.
func (n *names) ServeDNS(w dns.ResponseWriter, question *dns.Msg) {
	n.mu.Lock()
	defer n.mu.Unlock()
	m := new(dns.Msg)
	m.SetReply(question)
	q := question.Question[0]
	addresses, ok := n.addresses[q.Name]
	if !ok {
		m.Rcode = dns.RcodeNameError
	}
	for _, a := range addresses {
		if q.Qtype == dns.TypeA {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA,
				Class: dns.ClassINET}, A: net.ParseIP(a)})
		}
	}
	_ = w.WriteMsg(m)
}

// twins starts two servers on one port, which respond with their addresses: 127.0.0.1 and 127.0.0.2.
func twins(t *testing.T) (port string) {
	t.Helper()
	ip, port := backend(t, "127.0.0.1")
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.2", port))
	if err != nil {
		t.Fatal(err)
	}
	other := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "127.0.0.2 %s", r.URL.RequestURI()) },
	)}}
	other.Start()
	t.Cleanup(other.Close)
	if ip != "127.0.0.1" {
		t.Fatalf("the first server is at %s", ip)
	}
	return port
}

// TestExternalName checks that requests and streams follow the addresses of a DNS name.
func TestExternalName(t *testing.T) {
	port, stream, dnsServer := twins(t), fixture.Port(t), serveNames(t)
	dnsServer.set("db.example", "127.0.0.1")
	in := start(t, class+external("db", "db.example")+ruleTo(port, "a", "a.example", "db")+
		tcpServices(fmt.Sprintf(`%q: "default/db:%s"`, stream, port)),
		"external_names all", "resolvers "+dnsServer.address, "tcp_services default/tcp-services",
		"stream_bind 127.0.0.1")
	in.becomes("a.example", "/x", http.StatusOK, "127.0.0.1 /x")
	in.leadsTo(stream, "127.0.0.1 /tcp")
	generation := in.status().Generation

	dnsServer.set("db.example", "127.0.0.2")
	in.becomes("a.example", "/x", http.StatusOK, "127.0.0.2 /x")
	in.leadsTo(stream, "127.0.0.2 /tcp")
	if now := in.status().Generation; now != generation {
		t.Errorf("an address took the way through the pipeline: generation %d, then %d", generation, now)
	}
	in.expectBackend("default/db/"+port, "db.example:"+port, "127.0.0.2:"+port)

	// Other changes do not affect the addresses, even if the DNS server is down.
	dnsServer.stop()
	in.write("more.yaml", ruleTo(port, "b", "b.example", "db"))
	in.becomes("b.example", "/x", http.StatusOK, "127.0.0.2 /x")
	in.expect("a.example", "/x", http.StatusOK, "127.0.0.2 /x")
	in.expectBackend("default/db/"+port, "db.example:"+port, "127.0.0.2:"+port)

	in.write("manifests.yaml", class+service("db", port, "127.0.0.1")+rule("a", "a.example", "Prefix", "/", "db"))
	in.becomes("a.example", "/x", http.StatusOK, "127.0.0.1 /x")
}

// expectBackend checks the endpoints of a backend in the response of /k8singress/config.
func (in *ingress) expectBackend(id, name string, endpoints ...string) {
	in.Helper()
	var config struct {
		Apps struct {
			K8singress struct {
				Live struct {
					Backends map[string]struct {
						Endpoints    []string
						ExternalName string `json:"external_name"`
					}
				}
			}
		}
	}
	in.adminJSON("/k8singress/config", &config)
	b := config.Apps.K8singress.Live.Backends[id]
	if diff := cmp.Diff(endpoints, b.Endpoints); diff != "" || b.ExternalName != name {
		in.Errorf("%s has the name %q: %s", id, b.ExternalName, diff)
	}
}

// TestExternalNameOfThisMachine checks that a name never leads to an address that only this machine can reach, and that
// the owner of the Ingress is told why requests get 503.
func TestExternalNameOfThisMachine(t *testing.T) {
	port, dnsServer := twins(t), serveNames(t)
	dnsServer.set("evil.example", "127.0.0.1", "169.254.169.254")
	in := start(t, class+external("evil", "evil.example")+ruleTo(port, "a", "a.example", "evil")+
		external("literal", "127.0.0.1")+ruleTo(port, "b", "b.example", "literal")+
		external("localhost", "localhost")+ruleTo(port, "c", "c.example", "localhost")+
		external("missing", "missing.example")+ruleTo(port, "d", "d.example", "missing"),
		"resolvers "+dnsServer.address)
	for object, words := range map[string]string{
		"a": "the name evil.example of the Service default/evil resolves to addresses that are not allowed: " +
			"127.0.0.1 (loopback), 169.254.169.254 (metadata of the cloud), so requests get 503; " +
			"\"external_names all\" allows them",
		"b": "the externalName \"127.0.0.1\" of the Service default/literal is not allowed, because it is an address " +
			"of the controller itself or of its local network (the option \"external_names all\" allows it): " +
			"requests get 503",
		"c": "the externalName \"localhost\" of the Service default/localhost is not allowed, because it is a " +
			"name of the controller itself (the option \"external_names all\" allows it): requests get 503",
		"d": "the name missing.example of the Service default/missing has no addresses: the name does not exist " +
			"in the DNS, so requests get 503",
	} {
		in.eventually("the verdict on "+object, func() error {
			got := append(in.messages("Ingress/default/"+object, "NoEndpoints"),
				in.messages("Ingress/default/"+object, "InvalidBackend")...)
			if len(got) != 1 || got[0] != words {
				return fmt.Errorf("%q", got)
			}
			return nil
		})
		in.expect(object+".example", "/", http.StatusServiceUnavailable, "")
	}
}

// TestExternalNameInADocument checks that a process that takes documents resolves the names in them itself, regardless
// of the addresses that the other process had.
func TestExternalNameInADocument(t *testing.T) {
	port, dnsServer := twins(t), serveNames(t)
	dnsServer.set("db.example", "127.0.0.1")
	manifests := class + external("db", "db.example") + ruleTo(port, "a", "a.example", "db")
	options := "external_names all\nresolvers " + dnsServer.address
	in := start(t, manifests, options)
	in.becomes("a.example", "/x", http.StatusOK, "127.0.0.1 /x")
	document := in.document()

	dnsServer.set("db.example", "127.0.0.2")
	in.load("source none\n" + options)
	if status, text := in.put(document); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	in.becomes("a.example", "/x", http.StatusOK, "127.0.0.2 /x")
	in.expectBackend("default/db/"+port, "db.example:"+port, "127.0.0.2:"+port)
}
