package l4app

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// datagramSize is more than the largest UDP datagram.
	datagramSize = 64 << 10
	// batchSize is how many datagrams one system call takes or gives at most.
	batchSize = 64
	// stride is how far apart the datagrams of a batch are in memory. Were it a power of two, all of them would fight for
	// the same lines of the processor's cache.
	stride = datagramSize + 17*64
)

// message is the kernel's struct mmsghdr. golang.org/x/net has these calls as well, but sets up each message of a batch
// for each call, and makes an address of each datagram.
type message struct {
	unix.Msghdr
	length uint32
}

func receiveMessages(socket int, into []message) (int, error) {
	return exchangeMessages(unix.SYS_RECVMMSG, socket, into)
}

// sendMessages returns how many messages were sent; the error is about the one after them.
func sendMessages(socket int, messages []message) (int, error) {
	return exchangeMessages(unix.SYS_SENDMMSG, socket, messages)
}

// exchangeMessages does not wait.
func exchangeMessages(call uintptr, socket int, messages []message) (int, error) {
	for {
		n, _, errno := unix.Syscall6(call, uintptr(socket), uintptr(unsafe.Pointer(&messages[0])), uintptr(len(messages)), unix.MSG_DONTWAIT, 0, 0)
		if errno == 0 {
			return int(n), nil
		}
		if errno != unix.EINTR {
			return 0, errno
		}
	}
}

// name is a socket address as the kernel has it: of IPv6, or of IPv4 and shorter.
type name [unix.SizeofSockaddrInet6]byte

// batch is what one goroutine needs while it moves datagrams. Only the pages of it that hold datagrams use memory.
type batch struct {
	memory  []byte
	vectors [batchSize]unix.Iovec
	// questions are received with names, answers without. Both have the same memory.
	questions, answers [batchSize]message
	names              [batchSize]name
	controls           [batchSize]control
	// sizes are those of the datagrams in each message: of a train, all have this size but the last one.
	sizes [batchSize]int
	// next chains the questions of one session; answered is how many answers there are.
	next     [batchSize]int
	answered int

	// outgoing are messages to send: datagrams, or trains of them.
	outgoing outgoing
	// gathered are the questions of one session in a row, and gatheredSizes the sizes of the datagrams in them.
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

// reset makes one place ready for the next datagram.
func (b *batch) reset(i int) {
	b.vectors[i].SetLen(datagramSize)
	m := unix.Msghdr{Iov: &b.vectors[i], Iovlen: 1, Control: (*byte)(unsafe.Pointer(&b.controls[i]))}
	m.SetControllen(int(unsafe.Sizeof(b.controls[i])))
	b.answers[i].Msghdr = m
	m.Name, m.Namelen = &b.names[i][0], uint32(len(b.names[i]))
	b.questions[i].Msghdr = m
}

// take notes how long a message is that was received, and which size the datagrams in it have. It returns the address
// that it was sent to, which is invalid if the socket does not tell.
func (b *batch) take(i int, m *message) (asked netip.Addr) {
	b.sizes[i] = int(m.length)
	b.vectors[i].SetLen(b.sizes[i])
	for at := 0; at+unix.SizeofCmsghdr <= int(m.Controllen); {
		header := (*unix.Cmsghdr)(unsafe.Add(unsafe.Pointer(&b.controls[i]), at))
		data := unsafe.Add(unsafe.Pointer(header), unix.CmsgLen(0))
		switch {
		case header.Level == unix.IPPROTO_UDP && header.Type == unix.UDP_GRO:
			b.sizes[i] = int(*(*int32)(data))
		case header.Level == unix.IPPROTO_IP && header.Type == unix.IP_PKTINFO:
			asked = netip.AddrFrom4((*unix.Inet4Pktinfo)(data).Spec_dst)
		case header.Level == unix.IPPROTO_IPV6 && header.Type == unix.IPV6_PKTINFO:
			asked = netip.AddrFrom16((*unix.Inet6Pktinfo)(data).Addr)
		}
		at += unix.CmsgSpace(int(header.Len) - unix.CmsgLen(0))
	}
	return asked
}

// carried is what a message carries that was taken.
func (b *batch) carried(i int) load { return loadOf(int(b.vectors[i].Len), b.sizes[i]) }

// peer returns who sent a question to an address.
func (b *batch) peer(i int, asked netip.Addr) peer {
	raw := &b.names[i]
	port := binary.BigEndian.Uint16(raw[2:])
	if binary.NativeEndian.Uint16(raw[:]) == unix.AF_INET {
		return peer{client: netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port), asked: asked}
	}
	address := netip.AddrFrom16([16]byte(raw[8:24]))
	if scope := binary.NativeEndian.Uint32(raw[24:]); scope != 0 {
		address = address.WithZone(strconv.Itoa(int(scope)))
	}
	return peer{client: netip.AddrPortFrom(address, port), asked: asked}
}

// batches are those that nobody uses. There are as many as goroutines that moved datagrams at the same time, and a
// goroutine has none while it waits.
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
