package featuretests

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// large is a name whose response fits into 4 KiB. The response for larger only fits into TCP.
const (
	large  = "large.example."
	larger = "larger.example."
)

// nameServer starts a name server on UDP and TCP with the same port. Its responses have one address, or text of a size
// that depends on the name.
func nameServer(t *testing.T) (ip, port string) {
	t.Helper()
	handler := dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) {
		answer := new(dns.Msg).SetReply(question)
		name := question.Question[0].Name
		header := dns.RR_Header{Name: name, Rrtype: question.Question[0].Qtype, Class: dns.ClassINET, Ttl: 5}
		room := dns.MinMsgSize
		if options := question.IsEdns0(); options != nil {
			room = int(options.UDPSize())
			answer.SetEdns0(4096, false)
		}
		switch name {
		case large, larger:
			for i := range map[string]int{large: 19, larger: 100}[name] {
				answer.Answer = append(answer.Answer,
					&dns.TXT{Hdr: header, Txt: []string{fmt.Sprintf("%03d", i) + strings.Repeat("x", 197)}})
			}
			answer.Compress = true
		default:
			answer.Answer = []dns.RR{&dns.A{Hdr: header, A: net.IPv4(192, 0, 2, 7)}}
		}
		if w.LocalAddr().Network() == "udp" {
			answer.Truncate(room)
		}
		// A client that gets no response reports it.
		_ = w.WriteMsg(answer)
	})
	packets, listener := bothOn(t)
	for _, server := range []*dns.Server{{PacketConn: packets, Handler: handler},
		{Listener: listener, Handler: handler}} {
		started := make(chan struct{})
		server.NotifyStartedFunc = func() { close(started) }
		go func() {
			if err := server.ActivateAndServe(); err != nil {
				t.Error(err)
			}
		}()
		fixture.Receive(t, "the start of the name server", started)
		t.Cleanup(func() {
			if err := server.Shutdown(); err != nil {
				t.Error(err)
			}
		})
	}
	return hostPort(t, listener.Addr())
}

// bothOn listens on the same port number with UDP and TCP.
func bothOn(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		packets, err := net.ListenPacket("udp", listener.Addr().String())
		if err == nil {
			return packets, listener
		}
		listener.Close()
	}
	t.Fatal("no port is free for both UDP and TCP")
	return nil, nil
}

// nameService returns a Service that defines port 53 twice, for UDP and TCP, like the name Service of a cluster. It
// also returns the ConfigMaps that open the port own for both.
func nameService(port, ip, own string) string {
	entry := fmt.Sprintf("%q: default/kube-dns:53", own)
	return tcpServices(entry) + configMap("udp-services", entry) + fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: kube-dns}
spec:
  ports:
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kube-dns-1, labels: {kubernetes.io/service-name: kube-dns}}
addressType: IPv4
ports: [{name: dns, port: %[1]s, protocol: UDP}, {name: dns-tcp, port: %[1]s, protocol: TCP}]
endpoints: [{addresses: [%[2]s]}]
`, port, ip)
}

// behindNamePort runs an ingress in front of a name server, and returns the address of its port.
func behindNamePort(t *testing.T) (address string) {
	t.Helper()
	ip, port := nameServer(t)
	own := fixture.Port(t)
	address = "127.0.0.1:" + own
	in := start(t, class+nameService(port, ip, own),
		"tcp_services default/tcp-services", "udp_services default/udp-services", "stream_bind 127.0.0.1")
	in.eventually("the ports", func() error {
		for _, network := range []string{"udp", "tcp"} {
			// A datagram that arrives while the port is being opened is lost.
			if _, err := resolveWithin(time.Second, address, network, "small.example.", dns.TypeA); err != nil {
				return err
			}
		}
		return nil
	})
	return address
}

// resolve sends one query from its own port, and returns the response.
func resolve(address, network, name string, kind uint16) (*dns.Msg, error) {
	return resolveWithin(deadline, address, network, name, kind)
}

func resolveWithin(patience time.Duration, address, network, name string, kind uint16) (*dns.Msg, error) {
	client := dns.Client{Net: network, Timeout: patience}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(name, kind).SetEdns0(4096, false), address)
	return answer, err
}

func TestDNSBehindPorts(t *testing.T) {
	address := behindNamePort(t)
	for _, c := range []struct {
		network, name string
		kind          uint16
		answers       int
		truncated     bool
	}{
		{"udp", "small.example.", dns.TypeA, 1, false},
		{"tcp", "small.example.", dns.TypeA, 1, false},
		{"udp", large, dns.TypeTXT, 19, false},
		{"tcp", large, dns.TypeTXT, 19, false},
		{"udp", larger, dns.TypeTXT, 0, true},
		{"tcp", larger, dns.TypeTXT, 100, false},
	} {
		t.Run(c.network+" "+c.name, func(t *testing.T) {
			got, err := resolve(address, c.network, c.name, c.kind)
			if err != nil {
				t.Fatal(err)
			}
			if got.Truncated != c.truncated || !c.truncated && len(got.Answer) != c.answers {
				t.Errorf("%d answers, truncated %v", len(got.Answer), got.Truncated)
			}
			if c.name == large && got.Len() < 3900 {
				t.Errorf("the large answer has %d bytes only", got.Len())
			}
		})
	}
}

// TestDNSClientsAtOnce checks that each of many concurrent clients gets the response to its own query.
func TestDNSClientsAtOnce(t *testing.T) {
	address := behindNamePort(t)
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			for n := range 5 {
				name := fmt.Sprintf("n%d-%d.example.", i, n)
				got, err := resolve(address, "udp", name, dns.TypeA)
				if err != nil || len(got.Answer) != 1 || got.Answer[0].Header().Name != name {
					t.Errorf("%s is answered %v, error %v", name, got, err)
					return
				}
			}
		})
	}
	clients.Wait()
}
