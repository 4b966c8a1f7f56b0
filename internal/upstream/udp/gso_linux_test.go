package udp

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/process/budget"
	"github.com/k8singress/k8singress/internal/process/loops"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/upstream/balancer"
	"github.com/k8singress/k8singress/internal/upstream/split"
)

// port is a forwarder that runs until the test ends.
type port struct {
	*Forwarder
	t      *testing.T
	number int
}

// open runs a forwarder on an address, with an endpoint.
func open(t *testing.T, address, endpoint string, responses int64) *port {
	t.Helper()
	socket, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	backend := balancer.New("a")
	backend.SetEndpoints([]ir.Endpoint{{Address: endpoint}})
	log := func(message string, fields ...zap.Field) { t.Log(message, fields) }
	settings := &Settings{
		Backends: split.Only(backend), IdleTimeout: time.Minute, Responses: responses, MaxSessions: 10, Tries: 1,
		NoEndpoint: log, Broken: log,
		Share: budget.New(0).Share("a", "udp/1"), Outgoing: new(loops.Sockets), Guard: loopback(),
		Ended: func(Ended) {},
	}
	p := &port{t: t, number: socket.LocalAddr().(*net.UDPAddr).Port}
	if p.Forwarder, err = New(socket, func() *Settings { return settings }, new(Traffic)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.Run()
	}()
	t.Cleanup(func() {
		_ = p.Close()
		<-ended
	})
	return p
}

// dial returns a client of the port, with a deadline.
func (p *port) dial(host string) net.Conn {
	p.t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(host, strconv.Itoa(p.number)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(fixture.Patience))
	return conn
}

func send(t *testing.T, conn net.Conn, data []byte) {
	t.Helper()
	if _, err := conn.Write(data); err != nil {
		t.Fatal(err)
	}
}

// endpoint returns the socket of an endpoint, which the test itself reads and writes.
func endpoint(t *testing.T) *net.UDPConn {
	t.Helper()
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	_ = server.SetDeadline(time.Now().Add(fixture.Patience))
	return server
}

// echo sends back what an endpoint receives.
func echo(server *net.UDPConn) {
	buffer := make([]byte, datagramSize)
	for {
		n, from, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = server.WriteTo(buffer[:n], from)
	}
}

// segmenting makes a socket send each write as datagrams of the given size, as QUIC implementations do.
func segmenting(t *testing.T, conn net.Conn, size int) {
	t.Helper()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size); err != nil {
			t.Skipf("this kernel has no UDP_SEGMENT: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// numbered returns the bytes of a GSO message whose datagrams differ.
func numbered(total, size int) []byte {
	all := make([]byte, total)
	for i := range all {
		all[i] = byte(i / size)
	}
	return all
}

func expectPieces(t *testing.T, conn net.Conn, whole []byte, size int) {
	t.Helper()
	buffer := make([]byte, datagramSize)
	for at := 0; at < len(whole); at += size {
		n, err := conn.Read(buffer)
		if want := whole[at:min(at+size, len(whole))]; err != nil || !bytes.Equal(buffer[:n], want) {
			t.Fatalf("at byte %d came %d bytes, %v; want %d", at, n, err, len(want))
		}
	}
}

// TestGSOOfAClient checks that an endpoint without GRO gets the same datagrams that the client sent, for each address
// of a wildcard port.
func TestGSOOfAClient(t *testing.T) {
	server := endpoint(t)
	_ = server.SetReadBuffer(4 << 20)
	go echo(server)
	p, want := open(t, ":0", server.LocalAddr().String(), 0), load{}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		conn := p.dial(host)
		for _, size := range []int{1, 64, 1400, 20000} {
			segmenting(t, conn, size)
			whole := numbered(min(63*size+(size+1)/2, 65000), size)
			send(t, conn, whole)
			expectPieces(t, conn, whole, size)
			want.add(loadOf(len(whole), size))
		}
	}
	fixture.Holds(t, "the count of "+fmt.Sprint(want), func() bool {
		return p.traffic.In.Datagrams.Load() == uint64(want.datagrams) &&
			p.traffic.Out.Datagrams.Load() == uint64(want.datagrams) &&
			p.traffic.In.Bytes.Load() == uint64(want.bytes)
	})
}

// TestGSOOfAnEndpoint checks that a GSO message counts as the number of responses that it contains.
func TestGSOOfAnEndpoint(t *testing.T) {
	server := endpoint(t)
	p := open(t, "127.0.0.1:0", server.LocalAddr().String(), 5)
	conn := p.dial("127.0.0.1")
	send(t, conn, []byte("request"))
	_, session, err := server.ReadFrom(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	const size = 100
	segmenting(t, server, size)
	for i, whole := range [][]byte{numbered(350, size), numbered(80, size)} {
		if n := p.traffic.Sessions.Load(); n != 1 {
			t.Fatalf("before message %d there are %d sessions", i, n)
		}
		if _, err := server.WriteTo(whole, session); err != nil {
			t.Fatal(err)
		}
		expectPieces(t, conn, whole, size)
	}
	fixture.Holds(t, "the end of the session", func() bool { return p.traffic.Sessions.Load() == 0 })
}

// withoutChecksums makes the kernel reject GSO messages on a socket.
func withoutChecksums(t *testing.T, socket int) {
	t.Helper()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
}

// TestRefusedGSO checks that the datagrams of a GSO message arrive and are counted if the kernel rejects the message,
// both towards an endpoint and towards a client.
func TestRefusedGSO(t *testing.T) {
	server := endpoint(t)
	p := open(t, "127.0.0.1:0", server.LocalAddr().String(), 0)
	client, traffic := p.dial("127.0.0.1"), p.traffic
	send(t, client, []byte("request"))
	_, session, err := server.ReadFrom(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Holds(t, "the count of the request", func() bool { return traffic.In.Datagrams.Load() == 1 })
	withoutChecksums(t, p.socket)
	for _, s := range p.sessions.byKey {
		withoutChecksums(t, s.upstream.socket)
	}

	const size = 100
	segmenting(t, client, size)
	segmenting(t, server, size)
	there, back := numbered(1050, size), numbered(730, size)
	send(t, client, there)
	expectPieces(t, server, there, size)
	if _, err := server.WriteTo(back, session); err != nil {
		t.Fatal(err)
	}
	expectPieces(t, client, back, size)
	fixture.Holds(t, "the count of all",
		func() bool { return traffic.In.Datagrams.Load() == 1+11 && traffic.Out.Datagrams.Load() == 8 })
	for why := range Losses {
		if n := traffic.Lost[why].Load(); n > 0 {
			t.Errorf("%d are lost: %s", n, why)
		}
	}
}
