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
	// datagramSize is larger than the largest UDP datagram.
	datagramSize = 64 << 10
	// batchSize is the maximum number of messages per system call.
	batchSize = 64
	// stride is the distance in bytes between the datagrams of a batch in memory. It is not a power of two, because all
	// datagrams would then compete for the same cache lines.
	stride = datagramSize + 17*64
)

// message is the kernel's struct mmsghdr. golang.org/x/net also has these calls, but it sets up every message of a
// batch for each call and allocates an address for each datagram.
type message struct {
	unix.Msghdr
	length uint32
}

func receiveMessages(socket int, into []message) (int, error) {
	return exchangeMessages(unix.SYS_RECVMMSG, socket, into)
}

// sendMessages returns the number of messages that were sent. An error is about the message after them.
func sendMessages(socket int, messages []message) (int, error) {
	return exchangeMessages(unix.SYS_SENDMMSG, socket, messages)
}

// exchangeMessages sends or receives without blocking.
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

// name is a socket address in the kernel's format, for IPv6 or the shorter one for IPv4.
type name [unix.SizeofSockaddrInet6]byte

// batch holds the messages of one pass of a forwarder. Only the pages that contain datagrams use memory.
type batch struct {
	memory  []byte
	vectors [batchSize]unix.Iovec
	// requests are received with the addresses of their senders, responses without. Both use the same memory.
	requests, responses [batchSize]message
	names               [batchSize]name
	controls            [batchSize]control
	// sizes are the sizes of the datagrams in each message. If GRO joined several datagrams, the last one may be
	// smaller.
	sizes [batchSize]int
	// next links the requests of one session. responded is the number of responses.
	next      [batchSize]int
	responded int

	// outgoing holds the messages to send.
	outgoing outgoing
	// gathered are the requests of one session in order, and gatheredSizes the sizes of their datagrams.
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

// reset prepares one slot for the next datagram.
func (b *batch) reset(i int) {
	b.vectors[i].SetLen(datagramSize)
	m := unix.Msghdr{Iov: &b.vectors[i], Iovlen: 1, Control: (*byte)(unsafe.Pointer(&b.controls[i]))}
	m.SetControllen(int(unsafe.Sizeof(b.controls[i])))
	b.responses[i].Msghdr = m
	m.Name, m.Namelen = &b.names[i][0], uint32(len(b.names[i]))
	b.requests[i].Msghdr = m
}

// parse sets the length of a received message, and the size of the datagrams in it. It returns the local address to
// which the message was sent, which is invalid without packet info.
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

// carried returns the numbers of datagrams and bytes in a received message.
func (b *batch) carried(i int) load { return loadOf(int(b.vectors[i].Len), b.sizes[i]) }

// key returns the session key of a request that was sent to a local address.
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

// batches holds the unused batches. There are as many batches as goroutines that ever forwarded datagrams at the same
// time. A goroutine that waits has no batch.
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
