package featuretests

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// behindTCPPort runs an ingress with a TCP port that leads to an address, and returns the address of the port. flags
// are the flags of the entry in the ConfigMap, such as ":PROXY".
func behindTCPPort(t *testing.T, backend, flags string) (address string) {
	t.Helper()
	ip, port, err := net.SplitHostPort(backend)
	if err != nil {
		t.Fatal(err)
	}
	address = fixture.Address(t)
	_, own, _ := net.SplitHostPort(address)
	in := start(t, class+service("app", port, ip)+tcpServices(fmt.Sprintf(`%q: "default/app:80%s"`, own, flags)),
		"tcp_services default/tcp-services", "stream_bind 127.0.0.1")
	_ = in.accepted(address).Close()
	return address
}

// listenFor calls handle for each connection, and closes it afterwards. All connections have ended when the test ends.
func listenFor(t *testing.T, wrap func(net.Listener) net.Listener, handle func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	address, listener = listener.Addr().String(), wrap(listener)
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				handle(conn)
			})
		}
	})
	return address
}

func plainly(l net.Listener) net.Listener { return l }

// forward copies all bytes in both directions, after a header if it is not nil.
func forward(conn net.Conn, to string, header *proxyproto.Header) error {
	next, err := net.DialTimeout("tcp", to, deadline)
	if err != nil {
		return err
	}
	defer next.Close()
	if header != nil {
		if _, err := header.WriteTo(next); err != nil {
			return err
		}
	}
	back := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, next)
		back <- errors.Join(err, closeWrite(conn))
	}()
	_, err = io.Copy(next, conn)
	return errors.Join(err, closeWrite(next), <-back)
}

func closeWrite(conn net.Conn) error {
	if wrapped, ok := conn.(*proxyproto.Conn); ok {
		conn = wrapped.Raw()
	}
	return conn.(*net.TCPConn).CloseWrite()
}

// clientAddress is the client address in a load balancer's header.
const clientAddress = "203.0.113.7:4711"

// headerOf returns the PROXY header of such a load balancer.
func headerOf(version byte) *proxyproto.Header {
	from, to := netip.MustParseAddrPort(clientAddress), netip.MustParseAddrPort("198.51.100.1:5432")
	return proxyproto.HeaderProxyFromAddrs(version, net.TCPAddrFromAddrPort(from), net.TCPAddrFromAddrPort(to))
}

// balancer starts a load balancer in front of an ingress, for clients without the PROXY protocol.
func balancer(t *testing.T, to string, version byte) (address string) {
	t.Helper()
	return listenFor(t, plainly, func(conn net.Conn) {
		// The client and the backend decide which end closes first.
		_ = forward(conn, to, headerOf(version))
	})
}

// receiver is a proxy in front of a backend without the PROXY protocol. It requires PROXY headers.
type receiver struct {
	address string

	mu      sync.Mutex
	clients []string
}

func newReceiver(t *testing.T, to string) *receiver {
	t.Helper()
	r := &receiver{}
	demanding := func(l net.Listener) net.Listener {
		return &proxyproto.Listener{
			Listener: l, ReadHeaderTimeout: deadline,
			ConnPolicy: func(proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
				return proxyproto.REQUIRE, nil
			},
		}
	}
	r.address = listenFor(t, demanding, func(conn net.Conn) {
		if conn.(*proxyproto.Conn).ProxyHeader() == nil {
			return
		}
		r.note(conn.RemoteAddr().String())
		_ = forward(conn, to, nil)
	})
	return r
}

func (r *receiver) note(client string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients = append(r.clients, client)
}

// seen returns the client addresses in the headers.
func (r *receiver) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clients
}

// throughTCPPorts checks a backend without the PROXY protocol, through ports with and without it. The peers on both
// sides use another implementation of the protocol.
func throughTCPPorts(t *testing.T, backend string, check func(t *testing.T, address string)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) { check(t, behindTCPPort(t, backend, "")) })
	for version := byte(1); version <= 2; version++ {
		t.Run(fmt.Sprintf("a header of version %d from clients", version), func(t *testing.T) {
			check(t, balancer(t, behindTCPPort(t, backend, ":PROXY"), version))
		})
	}
	t.Run("a header for the backend", func(t *testing.T) {
		r := newReceiver(t, backend)
		check(t, behindTCPPort(t, r.address, "::PROXY"))
		for _, client := range r.seen() {
			if host, _, _ := net.SplitHostPort(client); host != "127.0.0.1" {
				t.Errorf("a client is %s", client)
			}
		}
		if len(r.seen()) == 0 {
			t.Error("nobody came")
		}
	})
	t.Run("headers on both sides", func(t *testing.T) {
		r := newReceiver(t, backend)
		check(t, balancer(t, behindTCPPort(t, r.address, ":PROXY:PROXY"), 2))
		for _, client := range r.seen() {
			if client != clientAddress {
				t.Errorf("a client is %s", client)
			}
		}
		if len(r.seen()) == 0 {
			t.Error("nobody came")
		}
	})
}

// TestServerThatSpeaksFirst checks a client that sends nothing before it has read a line, as with mail and MySQL.
func TestServerThatSpeaksFirst(t *testing.T) {
	server := listenFor(t, plainly, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "220 ready\r\n")
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil {
			_, _ = io.WriteString(conn, "250 "+line)
		}
	})
	throughTCPPorts(t, server, func(t *testing.T, address string) {
		conn := connect(t, address)
		reader := bufio.NewReader(conn)
		if line, err := reader.ReadString('\n'); line != "220 ready\r\n" {
			t.Fatalf("the server says %q first, error %v", line, err)
		}
		if _, err := io.WriteString(conn, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(reader); string(rest) != "250 hello\n" || err != nil {
			t.Errorf("then it says %q, error %v", rest, err)
		}
	})
}

// TestHealthCheckOfABalancer checks a PROXY header without an address: LOCAL of version 2, UNKNOWN of version 1.
func TestHealthCheckOfABalancer(t *testing.T) {
	server := listenFor(t, plainly, func(conn net.Conn) { _, _ = io.WriteString(conn, "220 ready\r\n") })
	address := behindTCPPort(t, server, ":PROXY")
	for name, header := range map[string]*proxyproto.Header{
		"LOCAL":   {Version: 2, Command: proxyproto.LOCAL, TransportProtocol: proxyproto.UNSPEC},
		"UNKNOWN": {Version: 1, Command: proxyproto.PROXY, TransportProtocol: proxyproto.UNSPEC},
	} {
		t.Run(name, func(t *testing.T) {
			conn := connect(t, address)
			if _, err := header.WriteTo(conn); err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(conn); string(got) != "220 ready\r\n" || err != nil {
				t.Errorf("the answer is %q, error %v", got, err)
			}
		})
	}
}
