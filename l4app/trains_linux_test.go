package l4app

import (
	"bytes"
	"fmt"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/internal/document"
	"github.com/k8singress/k8singress/internal/ir"
)

// trains lets a socket send what is written to it as datagrams of a size, as programs for QUIC do.
func trains(t *testing.T, conn net.Conn, size int) {
	t.Helper()
	raw, err := conn.(*net.UDPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT, size); err != nil {
			t.Skipf("this kernel knows no trains: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// numbered is a train whose datagrams can be told apart.
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

// TestTrainsOfAClient holds that an endpoint which knows no trains gets the datagrams that the client has sent, at each
// address of a port that has all of them.
func TestTrainsOfAClient(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	w.endpoints(r, echoBackend(t))
	if refused := w.ports.Update(w.ctx, map[string]*document.Port{portName(r): Render(r, nil)}); len(refused) > 0 {
		t.Fatalf("refused: %v", refused)
	}
	traffic, want := trafficOf(w, r), load{}
	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		conn, err := net.Dial("udp", net.JoinHostPort(host, fmt.Sprint(r.Port)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		for _, size := range []int{1, 64, 1400, 20000} {
			trains(t, conn, size)
			whole := numbered(min(63*size+(size+1)/2, 65000), size)
			if _, err := conn.Write(whole); err != nil {
				t.Fatal(err)
			}
			expectPieces(t, conn, whole, size)
			want.add(loadOf(len(whole), size))
		}
	}
	await(t, "the count of "+fmt.Sprint(want), func() bool {
		return traffic.in.datagrams.Load() == uint64(want.datagrams) && traffic.out.datagrams.Load() == uint64(want.datagrams) &&
			traffic.in.bytes.Load() == uint64(want.bytes)
	})
}

// serveDatagrams is the socket of an endpoint, with which the test itself does what an endpoint does.
func serveDatagrams(t *testing.T) *net.UDPConn {
	t.Helper()
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	_ = server.SetDeadline(time.Now().Add(patience))
	return server
}

// TestTrainOfAnEndpoint holds that a train counts as the answers that it has.
func TestTrainOfAnEndpoint(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	r.Policy.Responses = 5
	server := serveDatagrams(t)
	w.set(r, server.LocalAddr().String())
	conn, traffic := dial(t, r), trafficOf(w, r)
	send(t, conn, "question")
	_, session, err := server.ReadFrom(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	const size = 100
	trains(t, server, size)
	for i, whole := range [][]byte{numbered(350, size), numbered(80, size)} {
		if n := traffic.sessions.Load(); n != 1 {
			t.Fatalf("before train %d there are %d sessions", i, n)
		}
		if _, err := server.WriteTo(whole, session); err != nil {
			t.Fatal(err)
		}
		expectPieces(t, conn, whole, size)
	}
	await(t, "the end of the session", func() bool { return traffic.sessions.Load() == 0 })
}

// withoutChecksums makes a socket one on which the kernel takes no train.
func withoutChecksums(t *testing.T, socket int) {
	t.Helper()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
}

// TestTrainsThatDoNotPass holds that the datagrams of a train arrive, and count, where the kernel does not carry it on: on the
// way to an endpoint, and to a client.
func TestTrainsThatDoNotPass(t *testing.T) {
	w := newWorld(t)
	r := route(ir.UDP, freePort(t), "a")
	server := serveDatagrams(t)
	w.set(r, server.LocalAddr().String())
	client, traffic := dial(t, r), trafficOf(w, r)
	send(t, client, "question")
	_, session, err := server.ReadFrom(make([]byte, 100))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the count of the question", func() bool { return traffic.in.datagrams.Load() == 1 })
	forwarder := w.ports.open[portName(r)].forwarders[0]
	withoutChecksums(t, forwarder.socket)
	for _, s := range forwarder.sessions.byPeer {
		withoutChecksums(t, s.line.socket)
	}

	const size = 100
	trains(t, client, size)
	trains(t, server, size)
	there, back := numbered(1050, size), numbered(730, size)
	if _, err := client.Write(there); err != nil {
		t.Fatal(err)
	}
	expectPieces(t, server, there, size)
	if _, err := server.WriteTo(back, session); err != nil {
		t.Fatal(err)
	}
	expectPieces(t, client, back, size)
	await(t, "the count of all", func() bool { return traffic.in.datagrams.Load() == 1+11 && traffic.out.datagrams.Load() == 8 })
	for why := range traffic.lost {
		if n := traffic.lost[why].Load(); n > 0 {
			t.Errorf("%d are lost: %s", n, lossReasons[why])
		}
	}
}
