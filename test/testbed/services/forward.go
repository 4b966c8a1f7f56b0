package services

import (
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/k8singress/k8singress/test/testbed/network"
)

const (
	dialTimeout = 2 * time.Second
	// udpIdle is the time after which a UDP session without a response ends.
	udpIdle     = 30 * time.Second
	maxDatagram = 65535
)

// Forward listens on one address. It assigns connections and UDP clients to endpoints in turn.
type Forward struct {
	endpoints atomic.Pointer[[]string]
	next      atomic.Uint32
	listener  io.Closer
}

// Open listens in the namespace, and connects from outside the namespace to endpoints, each a host:port. The caller
// closes the result.
func Open(namespace *network.Namespace, a Address, endpoints []string) (*Forward, error) {
	f := &Forward{}
	f.endpoints.Store(&endpoints)
	host := net.JoinHostPort(a.IP, strconv.Itoa(int(a.Port)))
	err := namespace.Do(func() error {
		switch a.Protocol {
		case v1.ProtocolTCP:
			listener, err := net.Listen("tcp", host)
			if err == nil {
				f.listener = listener
				go f.acceptTCP(listener)
			}
			return err
		case v1.ProtocolUDP:
			conn, err := net.ListenPacket("udp", host)
			if err == nil {
				f.listener = conn
				go f.receiveUDP(conn)
			}
			return err
		default:
			return errors.ErrUnsupported
		}
	})
	return f, err
}

// Close stops listening. Open connections stay open.
func (f *Forward) Close() { _ = f.listener.Close() }

// dial tries each endpoint once.
func (f *Forward) dial(protocol string) (net.Conn, error) {
	endpoints := *f.endpoints.Load()
	var conn net.Conn
	err := errors.New("no endpoints")
	for range endpoints {
		endpoint := endpoints[int(f.next.Add(1))%len(endpoints)]
		if conn, err = net.DialTimeout(protocol, endpoint, dialTimeout); err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (f *Forward) acceptTCP(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go f.serveTCP(conn.(*net.TCPConn))
	}
}

func (f *Forward) serveTCP(client *net.TCPConn) {
	defer client.Close()
	conn, err := f.dial("tcp")
	if err != nil {
		return
	}
	defer conn.Close()
	server := conn.(*net.TCPConn)
	var ended sync.WaitGroup
	ended.Go(func() { pipe(server, client) })
	ended.Go(func() { pipe(client, server) })
	ended.Wait()
}

// pipe copies one direction. It forwards the end of that direction only, so that half-closed connections work.
func pipe(to, from *net.TCPConn) {
	_, _ = to.ReadFrom(from)
	_ = to.CloseWrite()
}

func (f *Forward) receiveUDP(listener net.PacketConn) {
	var mu sync.Mutex
	sessions := map[string]net.Conn{}
	buffer := make([]byte, maxDatagram)
	for {
		n, client, err := listener.ReadFrom(buffer)
		if err != nil {
			return
		}
		mu.Lock()
		session, known := sessions[client.String()]
		if !known {
			if session, err = f.dial("udp"); err != nil {
				mu.Unlock()
				continue
			}
			sessions[client.String()] = session
			go func() {
				answerUDP(listener, client, session)
				mu.Lock()
				defer mu.Unlock()
				delete(sessions, client.String())
			}()
		}
		mu.Unlock()
		_, _ = session.Write(buffer[:n])
	}
}

func answerUDP(listener net.PacketConn, client net.Addr, session net.Conn) {
	defer session.Close()
	buffer := make([]byte, maxDatagram)
	for {
		_ = session.SetReadDeadline(time.Now().Add(udpIdle))
		n, err := session.Read(buffer)
		if err != nil {
			return
		}
		_, _ = listener.WriteTo(buffer[:n], client)
	}
}
