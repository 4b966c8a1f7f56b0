package udp

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// datagramSize is the size of the buffer for a datagram in bytes. It is larger than the largest UDP datagram.
	datagramSize = 64 << 10
	// batchSize is the maximum number of messages that are sent or received with one system call.
	batchSize = 64
	// stride is the distance in bytes between the buffers of a batch in memory. It is not a power of two; otherwise all
	// buffers would compete for the same cache lines.
	stride = datagramSize + 17*64
)

// message is the kernel's struct mmsghdr, for recvmmsg and sendmmsg. The functions of golang.org/x/net for these calls
// are not used, because they initialize every message of a batch for each call, and allocate an address for each
// datagram.
type message struct {
	unix.Msghdr
	length uint32
}

func receiveMessages(socket int, into []message) (int, error) {
	return exchangeMessages(unix.SYS_RECVMMSG, socket, into)
}

// sendMessages sends messages without blocking, and returns how many of them were sent. If it returns an error, the
// first message that was not sent caused the error.
func sendMessages(socket int, messages []message) (int, error) {
	return exchangeMessages(unix.SYS_SENDMMSG, socket, messages)
}

// exchangeMessages makes a recvmmsg or sendmmsg system call, without blocking. It retries if the call is interrupted.
func exchangeMessages(call uintptr, socket int, messages []message) (int, error) {
	for {
		n, _, errno := unix.Syscall6(call, uintptr(socket), uintptr(unsafe.Pointer(&messages[0])),
			uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// name is a socket address in the kernel's format. Its size is enough for IPv6; an IPv4 address is shorter.
type name [unix.SizeofSockaddrInet6]byte

// batch holds the messages that a forwarder receives and sends in one iteration of its loop. Its buffers are large, but
// the operating system only allocates memory for the pages of a buffer that have contained datagrams.
type batch struct {
	memory  []byte
	vectors [batchSize]unix.Iovec
	// requests are the messages for datagrams from clients, including the client's address. responses are the messages
	// for datagrams from endpoints, without an address. Both use the same buffers, but not at the same time.
	requests, responses [batchSize]message
	names               [batchSize]name
	controls            [batchSize]control
	// sizes holds the size in bytes of the datagrams in each message. A message contains several datagrams of this size
	// if GRO (generic receive offload) has joined them; the last datagram may be smaller.
	sizes [batchSize]int
	// next links the messages that the same client has sent: next[i] is the index of the next message after message i,
	// or -1. responded is the number of messages from endpoints in the batch.
	next      [batchSize]int
	responded int

	// outgoing holds the messages that are sent next.
	outgoing outgoing
	// gathered holds the buffers of the messages that one client has sent, in the order of arrival. gatheredSizes holds
	// the size of the datagrams in each of these buffers.
	gathered      [batchSize]unix.Iovec
	gatheredSizes [batchSize]int
}

func newBatch() *batch {
	b := &batch{memory: make([]byte, batchSize*stride)}
	for i := range batchSize {
		b.vectors[i].Base = &b.memory[i*stride]
		b.reset(i)
	}
	return b
}

// reset prepares the request and the response with the index i for receiving the next datagram.
func (b *batch) reset(i int) {
	b.vectors[i].SetLen(datagramSize)
	m := unix.Msghdr{Iov: &b.vectors[i], Iovlen: 1, Control: (*byte)(unsafe.Pointer(&b.controls[i]))}
	m.SetControllen(int(unsafe.Sizeof(b.controls[i])))
	b.responses[i].Msghdr = m
	m.Name, m.Namelen = &b.names[i][0], uint32(len(b.names[i]))
	b.requests[i].Msghdr = m
}

// parse reads the length and the control data of the received message with the index i, and stores the size of its
// datagrams. It returns the local address to which the message was sent, or the zero value if the socket does not
// report this address.
func (b *batch) parse(i int, m *message) (local netip.Addr) {
	b.sizes[i] = int(m.length)
	b.vectors[i].SetLen(b.sizes[i])
	for at := 0; at+unix.SizeofCmsghdr <= int(m.Controllen); {
		header := (*unix.Cmsghdr)(unsafe.Add(unsafe.Pointer(&b.controls[i]), at))
		data := unsafe.Add(unsafe.Pointer(header), unix.CmsgLen(0))
		switch {
		case header.Level == unix.IPPROTO_UDP && header.Type == unix.UDP_GRO:
			b.sizes[i] = int(*(*int32)(data))
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO:
			local = netip.AddrFrom4((*unix.Inet4Pktinfo)(data).Spec_dst)
		case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO:
			local = netip.AddrFrom16((*unix.Inet6Pktinfo)(data).Addr)
		}
		at += unix.CmsgSpace(int(header.Len) - unix.CmsgLen(0))
	}
	return local
}

// carried returns the number and the total size of the datagrams in the received message with the index i.
func (b *batch) carried(i int) load { return loadOf(int(b.vectors[i].Len), b.sizes[i]) }

// key returns the key of the session to which the message with the index i, from a client, belongs. local is the
// address to which the client has sent the message.
func (b *batch) key(i int, local netip.Addr) key {
	raw := &b.names[i]
	port := binary.BigEndian.Uint16(raw[2:])
	if binary.NativeEndian.Uint16(raw[:]) == unix.AF_INET {
		return key{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port), local: local}
	}
	address := netip.AddrFrom16([16]byte(raw[8:24]))
	if scope := binary.NativeEndian.Uint32(raw[24:]); scope != 0 {
		address = address.WithZone(strconv.Itoa(int(scope)))
	}
	return key{client: netip.AddrPortFrom(address, port), local: local}
}

// batches holds the batches that are not in use. Forwarders share them: a goroutine uses a batch only while it forwards
// datagrams, not while it waits for them. Batches are never freed.
var batches struct {
	mu   sync.Mutex
	free []*batch
}

func takeBatch() *batch {
	batches.mu.Lock()
	defer batches.mu.Unlock()
	if last := len(batches.free) - 1; last >= 0 {
		b := batches.free[last]
		batches.free = batches.free[:last]
		return b
	}
	return newBatch()
}

func (b *batch) free() {
	batches.mu.Lock()
	defer batches.mu.Unlock()
	batches.free = append(batches.free, b)
}
