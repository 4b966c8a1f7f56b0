package l4app

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mholt/caddy-l4/modules/l4echo"
	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"

	"github.com/k8singress/k8singress/internal/model/document"
	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/udp"
)

// echoBackend starts an endpoint that echoes each datagram.
func echoBackend(t testing.TB) string {
	t.Helper()
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = socket.(*net.UDPConn).SetReadBuffer(4 << 20)
	t.Cleanup(func() { socket.Close() })
	go func() {
		conn := ipv4.NewPacketConn(socket)
		messages := make([]ipv4.Message, 32)
		for i := range messages {
			messages[i].Buffers = [][]byte{make([]byte, 64<<10)}
		}
		for {
			n, err := conn.ReadBatch(messages, 0)
			if err != nil {
				return
			}
			for i := range n {
				_, _ = socket.WriteTo(messages[i].Buffers[0][:messages[i].N], messages[i].Addr)
			}
		}
	}()
	return socket.LocalAddr().String()
}

// TestDatagramsOfOneClientStayApart checks that datagrams that are forwarded together arrive unchanged.
func TestDatagramsOfOneClientStayApart(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, echoBackend(t))
	conn := dial(t, r)
	buffer := make([]byte, 64<<10)
	for round, sizes := range [][]int{
		{100, 100, 100, 100, 100}, {100, 100, 40, 100, 100}, {100, 0, 100, 0, 0, 100}, {1, 2, 3, 4, 5, 6},
		{20000, 20000, 20000, 20000, 20000}, {65507, 65507}, {1400, 1400, 1400, 1}, {1, 0}, {0},
	} {
		for i, size := range sizes {
			if _, err := conn.Write(bytes.Repeat([]byte{byte(i)}, size)); err != nil {
				t.Fatal(err)
			}
		}
		for i, size := range sizes {
			n, err := conn.Read(buffer)
			if err != nil || !bytes.Equal(buffer[:n], bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("round %d, datagram %d: got %d bytes, %v; want %d", round, i, n, err, size)
			}
		}
	}
}

// TestResponseComesFromTheAddressOfTheRequest checks that, on a wildcard socket, each response comes from the address
// to which the request was sent. Clients ignore responses from other addresses.
func TestResponseComesFromTheAddressOfTheRequest(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.endpoints(r, packetBackend(t, "a:"))
	if refused := w.ports.Update(w.ctx, map[string]*document.Port{portName(r): Render(r, nil)}); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	// The same client sends to all addresses.
	from := &net.UDPAddr{Port: int(freePort(t))}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1", "127.0.0.3"} {
		conn, err := net.DialUDP("udp", from, &net.UDPAddr{IP: net.ParseIP(host), Port: int(r.Port)})
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		for _, size := range []int{5, 1000} {
			exchange(t, conn, bytes.Repeat([]byte{'x'}, size), "a:"+strings.Repeat("x", size))
		}
		conn.Close()
	}
	if n := trafficOf(w, r).Sessions.Load(); n != 4 {
		t.Errorf("there are %d sessions", n)
	}
}

func TestEndpointOverIPv6(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	socket, err := net.ListenPacket("udp", "[::1]:0")
	if err != nil {
		t.Skipf("there is no IPv6 here: %v", err)
	}
	defer socket.Close()
	w.set(r, socket.LocalAddr().String())
	send(t, dial(t, r), "question")
	buffer := make([]byte, 100)
	_ = socket.SetDeadline(time.Now().Add(patience))
	if n, _, err := socket.ReadFrom(buffer); err != nil || string(buffer[:n]) != "question" {
		t.Fatalf("heard %q, %v", buffer[:n], err)
	}
}

func TestSessionMovesWhenItsEndpointGoes(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"))
	conn := dial(t, r)
	exchange(t, conn, []byte("1"), "a:1")
	w.endpoints(r, packetBackend(t, "b:"))
	exchange(t, conn, []byte("2"), "b:2")
	w.endpoints(r)
	send(t, conn, "lost")
	await(t, "the loss", func() bool { return trafficOf(w, r).Lost[udp.NoEndpoint].Load() == 1 })
	w.endpoints(r, packetBackend(t, "c:"))
	exchange(t, conn, []byte("3"), "c:3")
}

func TestSessionsOfAChangedPort(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.set(r, packetBackend(t, "a:"), packetBackend(t, "b:"))
	conn := dial(t, r)
	send(t, conn, "")
	name := make([]byte, 2)
	if _, err := conn.Read(name); err != nil {
		t.Fatal(err)
	}
	// If the backend stays, the endpoint stays.
	for i := range 6 {
		r.Policy.IdleTimeout = time.Duration(i+1) * time.Minute
		if refused := w.ports.Update(w.ctx, one(r)); len(refused) > 0 {
			t.Fatalf("refused: %v", refused)
		}
		exchange(t, conn, []byte("x"), string(name)+"x")
	}
	other := route(ir.UDP, r.Port, "other")
	w.set(other, packetBackend(t, "o:"))
	exchange(t, conn, []byte("x"), "o:x")
}

// TestIdleSessionEnds checks that only traffic, in either direction, keeps a session.
func TestIdleSessionEnds(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	r.Policy.IdleTimeout = 300 * time.Millisecond
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w.set(r, server.LocalAddr().String())
	traffic, conn := trafficOf(w, r), dial(t, r)
	buffer := make([]byte, 100)
	// First traffic from the server only, then from the client only.
	for _, from := range []func(session net.Addr) error{
		func(session net.Addr) error { _, err := server.WriteTo([]byte("news"), session); return err },
		func(net.Addr) error { _, err := conn.Write([]byte("news")); return err },
	} {
		// On a busy machine, there may be no traffic for too long, so the test retries.
		fixture.Eventually(t, "a session stays while one side sends", func() error {
			if _, err := conn.Write([]byte("subscribe")); err != nil {
				return err
			}
			_, session, err := server.ReadFrom(buffer)
			if err != nil {
				return err
			}
			before, ticks := traffic.Opened.Load(), time.NewTicker(20*time.Millisecond)
			defer ticks.Stop()
			for range 40 {
				<-ticks.C
				if err := from(session); err != nil {
					return err
				}
			}
			if n := traffic.Opened.Load() - before; n != 0 || traffic.Sessions.Load() != 1 {
				return fmt.Errorf("there have been %d more sessions", n)
			}
			return nil
		})
	}
	await(t, "the end of the session", func() bool { return traffic.Sessions.Load() == 0 })
	choice, _ := w.Endpoints.Backend(r.Backends[0].Backend.ID).Pick(nil, nil)
	if n := choice.Endpoint.InFlight(); n != 0 {
		t.Errorf("%d sessions are under way", n)
	}
}

func TestResponses(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	r.Policy.Responses = 2
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	w.set(r, server.LocalAddr().String())
	traffic, conn := trafficOf(w, r), dial(t, r)
	for range 2 {
		send(t, conn, "question")
	}
	buffer := make([]byte, 100)
	for answers := range 4 {
		if answers%2 == 0 {
			_, from, err := server.ReadFrom(buffer)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if n := traffic.Sessions.Load(); n != 1 {
					t.Fatalf("after %d answers, there are %d sessions", answers, n)
				}
				if _, err := server.WriteTo([]byte("answer"), from); err != nil {
					t.Fatal(err)
				}
				expect(t, conn, "answer")
			}
		}
	}
	await(t, "the end of the session", func() bool { return traffic.Sessions.Load() == 0 })
}

func TestRefusingEndpointIsEjected(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{EjectAfter: 1})
	down := "127.0.0.1:1"
	w.set(r, down, packetBackend(t, "u:"))
	buffer := make([]byte, 100)
	// One of two clients gets the endpoint that is down.
	for range 2 {
		conn := dial(t, r)
		await(t, "an answer", func() bool {
			send(t, conn, "x")
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			n, err := conn.Read(buffer)
			return err == nil && string(buffer[:n]) == "u:x"
		})
	}
	for range 4 {
		if choice, _ := w.Endpoints.Backend(r.Backends[0].Backend.ID).Pick(nil,
			nil); choice.Endpoint.Address() == down {
			t.Fatal("the endpoint that is down is not ejected")
		}
	}
}

func TestDatagramAffinity(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{ClientIP: time.Hour})
	w.set(r, packetBackend(t, "a:"), packetBackend(t, "b:"), packetBackend(t, "c:"))
	conn, name := dial(t, r), make([]byte, 2)
	send(t, conn, "")
	if _, err := conn.Read(name); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		exchange(t, dial(t, r), []byte("x"), string(name)+"x")
	}
}

// TestSlowEndpointBlocksNoOtherSession checks that a session whose endpoint does not read does not block other
// sessions.
func TestSlowEndpointBlocksNoOtherSession(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	slow, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	w.set(r, slow.LocalAddr().String())
	stuck := dial(t, r)
	send(t, stuck, "x")
	await(t, "the session", func() bool { return trafficOf(w, r).In.Datagrams.Load() == 1 })
	w.endpoints(r, slow.LocalAddr().String(), packetBackend(t, "f:"))
	w.Endpoints.Configure(r.Backends[0].Backend.ID, &ir.LoadBalancing{Policy: ir.PolicyLeastRequest})
	quick, large := dial(t, r), make([]byte, 1400)
	for range 100 {
		for range 30 {
			if _, err := stuck.Write(large); err != nil {
				t.Fatal(err)
			}
		}
		exchange(t, quick, []byte("x"), "f:x")
	}
}

// TestFlood checks that clients with forged addresses neither use up memory nor disturb active clients.
func TestFlood(t *testing.T) {
	const most, sources = 256, 200_000
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	r.Policy.MaxConnections = most
	w.set(r, packetBackend(t, "a:"))
	traffic, talks := trafficOf(w, r), dial(t, r)
	exchange(t, talks, []byte("1"), "a:1")
	exchange(t, talks, []byte("2"), "a:2")
	first, files := fixture.Heap(), descriptors(t)
	worst := int64(0)
	for n := 0; n < sources; n += 1000 {
		forge(t, r, n, 1000)
		worst = max(worst, traffic.Sessions.Load())
		// The socket buffer may be full for a moment.
		await(t, "an answer in the flood", func() bool {
			_ = talks.SetDeadline(time.Time{})
			send(t, talks, "x")
			_ = talks.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
			_, err := talks.Read(make([]byte, 100))
			return err == nil
		})
	}
	if worst > most {
		t.Errorf("there were %d sessions", worst)
	}
	if n := traffic.Opened.Load(); n < sources/10 {
		t.Errorf("only %d of the sources have come through", n)
	}
	if grown := fixture.Heap() - first; grown > 8<<20 {
		t.Errorf("it uses %d KiB more", grown>>10)
	}
	if n := descriptors(t); n > files+most {
		t.Errorf("there are %d open files, %d before", n, files)
	}
}

// forge sends a datagram from each of several loopback addresses.
func forge(t *testing.T, r *ir.StreamRoute, first, count int) {
	t.Helper()
	socket, err := net.ListenPacket("udp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	to, messages := &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: int(r.Port)}, make([]ipv4.Message, count)
	for i := range messages {
		source := ipv4.ControlMessage{Src: binary.BigEndian.AppendUint32(nil, 127<<24|1<<20|uint32(first+i))}
		messages[i] = ipv4.Message{Buffers: [][]byte{[]byte("forged")}, OOB: source.Marshal(), Addr: to}
	}
	for conn := ipv4.NewPacketConn(socket); len(messages) > 0; {
		n, err := conn.WriteBatch(messages, 0)
		if err != nil {
			t.Fatal(err)
		}
		messages = messages[n:]
	}
}

// TestPortChangesLeaveNothing checks that opening, changing and closing a port with sessions leaks nothing.
func TestPortChangesLeaveNothing(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	stays := route(ir.UDP, freePort(t), "stays")
	w.set(stays, packetBackend(t, "s:"))
	server := packetBackend(t, "a:")
	open := dial(t, stays)
	exchange(t, open, []byte("x"), "s:x")
	_ = open.SetDeadline(time.Time{})
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for n := range 1000 {
		w.set(r, server)
		if n%10 == 0 {
			conn := dial(t, r)
			exchange(t, conn, []byte("x"), "a:x")
			conn.Close()
		}
		r.Policy.Responses = n % 2
		w.set(r, server)
		w.remove(r)
	}
	await(t, "the end of what the ports had",
		func() bool { return descriptors(t) <= files && runtime.NumGoroutine() <= goroutines })
	exchange(t, open, []byte("x"), "s:x")
	if n := trafficOf(w, stays).Opened.Load(); n != 1 {
		t.Errorf("the other port had %d sessions", n)
	}
}

func TestPacketPortTakesOneHandlerOnly(t *testing.T) {
	for name, server := range map[string]string{
		"another handler": `"routes":[{"handle":[{"handler":"echo"}]}]`,
		"a matcher": `"routes":[{"match":[{"remote_ip":{"ranges":["10.0.0.0/8"]}}],` +
			`"handle":[{"handler":"k8singress","backend":"a/b/1"}]}]`,
		"two handlers": `"routes":[{"handle":[{"handler":"echo"},{"handler":"k8singress","backend":"a/b/1"}]}]`,
		"no route":     `"routes":[]`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			port := &document.Port{Server: json.RawMessage(fmt.Sprintf(`{"listen":["udp/127.0.0.1:%d"],%s}`,
				freePort(t), server))}
			refused := w.ports.Update(w.ctx, map[string]*document.Port{"a": port})
			if len(refused) != 1 || !errors.Is(refused[0].Err, errOneHandler) {
				t.Fatalf("refused: %v", refused)
			}
		})
	}
}

// TestNameServer checks DNS queries to a real server, through a port with one response per request.
func TestNameServer(t *testing.T) {
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: socket, Handler: dns.HandlerFunc(func(out dns.ResponseWriter, question *dns.Msg) {
		answer := new(dns.Msg).SetReply(question)
		record, err := dns.NewRR(question.Question[0].Name + " 60 IN A 192.0.2.7")
		if err == nil {
			answer.Answer = append(answer.Answer, record)
		}
		_ = out.WriteMsg(answer)
	})}
	done := make(chan error, 1)
	go func() { done <- server.ActivateAndServe() }()
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "dns")
	r.Policy.Responses = 1
	w.set(r, socket.LocalAddr().String())
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := range 50 {
				name := fmt.Sprintf("name-%d-%d.example.", i, n)
				got, err := dns.ExchangeContext(context.Background(), new(dns.Msg).SetQuestion(name, dns.TypeA),
					fmt.Sprintf("127.0.0.1:%d", r.Port))
				if err != nil || len(got.Answer) != 1 || got.Answer[0].Header().Name != name {
					t.Errorf("%s: %v, %v", name, got, err)
					return
				}
			}
		})
	}
	clients.Wait()
	await(t, "the end of the sessions", func() bool { return trafficOf(w, r).Sessions.Load() == 0 })
	if err := errors.Join(server.Shutdown(), fixture.Receive(t, "the end of the server", done)); err != nil {
		t.Error(err)
	}
}
