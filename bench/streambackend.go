package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"golang.org/x/net/ipv4"
)

// The first byte of a TCP connection tells the backend what to do.
const (
	// wantByte requests the same byte in response, and the end of the connection.
	wantByte = 'b'
	// wantSink makes the backend read and count all data.
	wantSink = 's'
	// wantEcho makes the backend send all data back.
	wantEcho = 'e'
)

// longestTrain is the maximum size of one UDP message in bytes.
const longestTrain = 64 << 10

// echoBatch is the number of UDP messages that are sent back with one system call.
const echoBatch = 64

// segment is the number of bytes in one read or write of bulk data. It is the default of iperf3.
const segment = 128 << 10

// streamBackend listens on a TCP port and on a UDP port. It sends datagrams back only when echo is called.
type streamBackend struct {
	tcp net.Listener
	udp *net.UDPConn
	// received is the number of bytes that connections with wantSink have sent.
	received atomic.Int64

	// socket wraps udp. in and out are its received and sent messages. controls has the control data for each size of
	// datagrams in a train.
	socket   *ipv4.PacketConn
	in, out  []ipv4.Message
	controls map[int][]byte
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
	b := &streamBackend{
		tcp: tcp, udp: udp, socket: ipv4.NewPacketConn(udp), controls: map[int][]byte{0: nil},
		in: newMessages(echoBatch, longestTrain, trainControlRoom), out: make([]ipv4.Message, echoBatch),
	}
	go b.accept()
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
		_, _ = conn.Write(want[:]) // If this fails, the client reports the missing byte.
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

// echo sends back the datagrams that have arrived, many with one system call. It responds to a train with a train. The
// goroutine that sends the datagrams calls it.
func (b *streamBackend) echo() error {
	n, err := readSome(b.socket, b.in)
	if err != nil || n == 0 {
		return err
	}
	for i, m := range b.in[:n] {
		size := trainSize(m.OOB[:m.NN])
		if size >= m.N {
			size = 0
		}
		if _, known := b.controls[size]; !known {
			b.controls[size] = trainControl(size)
		}
		b.out[i] = ipv4.Message{Buffers: [][]byte{m.Buffers[0][:m.N]}, OOB: b.controls[size], Addr: m.Addr}
	}
	return writeAll(b.socket, b.out[:n])
}

// newMessages returns buffers for a number of datagrams or trains, and for their control data.
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
