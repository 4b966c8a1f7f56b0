package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// What a client of the TCP backend wants is in its first byte.
const (
	// wantByte is answered with the same byte, and the connection closed.
	wantByte = 'b'
	// wantSink takes all that comes and counts it.
	wantSink = 's'
	// wantEcho sends back all that comes.
	wantEcho = 'e'
)

// longestTrain is as much as one message of UDP carries.
const longestTrain = 64 << 10

// segment is how much is written and read at once of bulk data: what iperf3 does by default.
const segment = 128 << 10

// streamBackend answers on a TCP port and on a UDP port. UDP is an echo.
type streamBackend struct {
	tcp net.Listener
	udp *net.UDPConn
	// received is how many bytes came to sinks.
	received atomic.Int64
}

func startStreamBackend() (*streamBackend, error) {
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	if err := udp.SetReadBuffer(datagramBuffer); err != nil {
		return nil, errors.Join(err, tcp.Close(), udp.Close())
	}
	b := &streamBackend{tcp: tcp, udp: udp}
	go b.accept()
	go b.echo()
	return b, nil
}

func (b *streamBackend) stop() {
	b.tcp.Close()
	b.udp.Close()
}

func (b *streamBackend) tcpAddress() string { return b.tcp.Addr().String() }

func (b *streamBackend) udpAddress() string { return b.udp.LocalAddr().String() }

func (b *streamBackend) accept() {
	for {
		conn, err := b.tcp.Accept()
		if err != nil {
			return
		}
		go b.serve(conn)
	}
}

func (b *streamBackend) serve(conn net.Conn) {
	defer conn.Close()
	var want [1]byte
	if _, err := io.ReadFull(conn, want[:]); err != nil {
		return
	}
	switch want[0] {
	case wantByte:
		_, _ = conn.Write(want[:]) // The client misses the byte, and says so.
	case wantSink:
		b.drain(conn)
	case wantEcho:
		_, _ = io.Copy(conn, conn)
	}
}

func (b *streamBackend) drain(conn net.Conn) {
	buffer := make([]byte, segment)
	for {
		n, err := conn.Read(buffer)
		b.received.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// echo sends datagrams back, many with one call of the system. It answers a train by one.
func (b *streamBackend) echo() {
	socket := ipv4.NewPacketConn(b.udp)
	in, out := newMessages(64, longestTrain, trainControlRoom), make([]ipv4.Message, 64)
	controls := map[int][]byte{0: nil}
	for {
		n, err := socket.ReadBatch(in, 0)
		if err != nil {
			return
		}
		for i, m := range in[:n] {
			size := trainSize(m.OOB[:m.NN])
			if size >= m.N {
				size = 0
			}
			if _, known := controls[size]; !known {
				controls[size] = trainControl(size)
			}
			out[i] = ipv4.Message{Buffers: [][]byte{m.Buffers[0][:m.N]}, OOB: controls[size], Addr: m.Addr}
		}
		if err := writeAll(socket, out[:n]); err != nil {
			return
		}
	}
}

// newMessages returns room for a number of datagrams, or of trains of them, and for what the kernel says beside them.
func newMessages(count, size, control int) []ipv4.Message {
	messages := make([]ipv4.Message, count)
	for i := range messages {
		messages[i] = ipv4.Message{Buffers: [][]byte{make([]byte, size)}, OOB: make([]byte, control)}
	}
	return messages
}

func writeAll(socket *ipv4.PacketConn, messages []ipv4.Message) error {
	for len(messages) > 0 {
		n, err := socket.WriteBatch(messages, 0)
		if err != nil {
			return fmt.Errorf("sending %d datagrams: %w", len(messages), err)
		}
		messages = messages[n:]
	}
	return nil
}
