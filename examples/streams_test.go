package examples_test

import (
	"cmp"
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/control/engine"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestStreamExamples checks that the manifests of the stream examples are valid.
func TestStreamExamples(t *testing.T) {
	for example, ports := range map[string][]string{
		"postgresql": {"tcp/5432"}, "dns": {"tcp/5300", "udp/5300"}, "proxy-protocol": {"tcp/9100"},
		"stream-chains": {"tcp/9100"}, "layer4": nil,
	} {
		t.Run(example, func(t *testing.T) {
			result, err := engine.RunOffline(example+"/manifests", optionsOf(t, example+"/Caddyfile"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for name := range result.Document.Ports {
				got = append(got, name)
			}
			if slices.Sort(got); !slices.Equal(got, ports) {
				t.Errorf("the ports are %v", got)
			}
			for _, v := range result.Report.Verdicts {
				for _, p := range v.Problems {
					if p.Reason == report.IgnoredKind {
						continue // Deployments are for the cluster.
					}
					t.Errorf("%s %s: %s: %s", v.Object.Kind, v.Object.Name, p.Reason, p.Message)
				}
			}
		})
	}
}

// TestStreamWorkloads checks that the Services of the examples select the pods beside them.
func TestStreamWorkloads(t *testing.T) {
	for _, file := range []string{"postgresql/manifests/db.yaml", "dns/manifests/dns.yaml"} {
		var workload appsv1.Deployment
		var service corev1.Service
		for document := range strings.SplitSeq(read(t, file), "---\n") {
			for kind, into := range map[string]any{"Deployment": &workload, "Service": &service} {
				if !strings.Contains(document, "kind: "+kind+"\n") {
					continue
				}
				if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
					t.Fatalf("%s: %s: %v", file, kind, err)
				}
			}
		}
		labels := workload.Spec.Template.Labels
		if selector := workload.Spec.Selector.MatchLabels; !maps.Equal(service.Spec.Selector, labels) ||
			!maps.Equal(selector, labels) {
			t.Errorf("%s: the pods have %v", file, labels)
		}
		for _, p := range service.Spec.Ports {
			named := func(c corev1.ContainerPort) bool {
				return c.Name == p.TargetPort.StrVal &&
					cmp.Or(c.Protocol, corev1.ProtocolTCP) == cmp.Or(p.Protocol, corev1.ProtocolTCP)
			}
			if !slices.ContainsFunc(workload.Spec.Template.Spec.Containers[0].Ports, named) {
				t.Errorf("%s: the port %s of the Service leads nowhere", file, p.Name)
			}
		}
	}
}

// TestDNS runs a name server at the address that the example uses.
func TestDNS(t *testing.T) {
	ports := copyWithFreePorts(t, "dns")
	for _, network := range []string{"udp", "tcp"} {
		serveNames(t, network, "127.0.0.1:"+ports["5301"])
	}
	start(t, "dns")
	for _, network := range []string{"udp", "tcp"} {
		// A datagram that arrives while the port is being opened is lost, so clients send it again.
		client := dns.Client{Net: network, Timeout: time.Second}
		var got *dns.Msg
		fixture.Eventually(t, "an answer by "+network, func() (err error) {
			got, _, err = client.Exchange(new(dns.Msg).SetQuestion("www.example.test.", dns.TypeA),
				"127.0.0.1:"+ports["5300"])
			return err
		})
		if len(got.Answer) != 1 || got.Answer[0].(*dns.A).A.String() != "192.0.2.7" {
			t.Errorf("%s: the answer is %v", network, got)
		}
	}
}

// serveNames starts a name server that responds to every query with an address.
func serveNames(t *testing.T, network, address string) {
	t.Helper()
	started := make(chan struct{})
	server := &dns.Server{Net: network, Addr: address, NotifyStartedFunc: func() { close(started) }}
	server.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		answer := new(dns.Msg).SetReply(question)
		header := dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}
		answer.Answer = []dns.RR{&dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 7)}}
		// If this fails, the client reports the missing response.
		_ = w.WriteMsg(answer)
	})
	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	select {
	case <-started:
	case err := <-failed:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(); err != nil {
			t.Error(err)
		}
	})
}

// TestProxyProtocol checks the responses that a user of the example sees, with curl as the load balancer.
func TestProxyProtocol(t *testing.T) {
	ports := copyWithFreePorts(t, "proxy-protocol")
	start(t, "proxy-protocol")
	const web, raw = "http://web.localhost:8080/", "http://localhost:9100/"
	balanced := behindBalancer(newClient(ports))
	await(t, balanced, web, "web: 203.0.113.7\n")
	await(t, balanced, raw, "raw: 203.0.113.7\n")
	for _, url := range []string{web, raw} {
		if status, got, err := get(t.Context(), newClient(ports), url); err == nil {
			t.Errorf("without a header %s answers %d %q", url, status, got)
		}
	}
}

// TestStreamChain checks that only connections for one host pass through the chain of a TCP port.
func TestStreamChain(t *testing.T) {
	ports := copyWithFreePorts(t, "stream-chains")
	start(t, "stream-chains")
	await(t, newClient(ports), "https://vault.localhost:9100/", "vault: vault.localhost\n")
	for _, url := range []string{"https://web.localhost:9100/", "http://vault.localhost:9100/"} {
		if status, got, err := get(t.Context(), newClient(ports), url); err == nil {
			t.Errorf("%s answers %d %q", url, status, got)
		}
	}
}

// TestLayer4 checks that the handler in the user's own layer4 app forwards connections to the Services of their routes,
// and that other connections are closed.
func TestLayer4(t *testing.T) {
	ports := copyWithFreePorts(t, "layer4")
	start(t, "layer4")
	await(t, newClient(ports), "https://keys.localhost:9100/", "vault: keys.localhost\n")
	await(t, newClient(ports), "http://web.localhost:9100/", "web: web.localhost\n")
	if status, got, err := get(t.Context(), newClient(ports), "https://web.localhost:9100/"); err == nil {
		t.Errorf("a connection that no route matches answers %d %q", status, got)
	}
}

// behindBalancer makes a client send the header of a load balancer at the start of each connection.
func behindBalancer(client *http.Client) *http.Client {
	transport := client.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		of := &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: 4711}
		_, err = proxyproto.HeaderProxyFromAddrs(1, of,
			&net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 80}).WriteTo(conn)
		return conn, err
	}
	return client
}
