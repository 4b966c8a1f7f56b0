package udp

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxGSOBytes is the maximum number of bytes in a GSO message (generic segmentation offload): the maximum length of a
// packet minus its IPv6 and UDP headers.
const maxGSOBytes = 65535 - 40 - 8

// control is a buffer for the control data (cmsg) of a message: the source address, and the segment size for GSO.
type control [64 / 8]uint64

// add writes the header of a control message at the offset at. It returns a pointer to the space for the data of the
// control message, and the offset of the next header.
func (c *control) add(at, level, kind, size int) (data unsafe.Pointer, end int) {
	header := (*unix.Cmsghdr)(unsafe.Add(unsafe.Pointer(c), at))
	header.Level, header.Type = int32(level), int32(kind)
	header.SetLen(unix.CmsgLen(size))
	return unsafe.Add(unsafe.Pointer(header), unix.CmsgLen(0)), at + unix.CmsgSpace(size)
}

// The method from adds the address from which a message must be sent, and returns the offset of the next header. If the
// address is not valid, or is a multicast address, it adds nothing and returns zero.
func (c *control) from(address netip.Addr) int {
	switch {
	case !address.IsValid() || address.IsMulticast():
		return 0
	case address.Is4():
		data, end := c.add(0, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		(*unix.Inet4Pktinfo)(data).Spec_dst = address.As4()
		return end
	default:
		data, end := c.add(0, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
		(*unix.Inet6Pktinfo)(data).Addr = address.As16()
		return end
	}
}

// destination is an address to which datagrams are sent, with the control data for sending them. The zero value is used
// for a connected socket, which needs no address.
type destination struct {
	name          name
	nameLength    uint32
	control       control
	controlLength int
	// noGSO is true if the kernel does not accept GSO messages for this destination.
	noGSO bool
}

// outgoing holds messages to send. Datagrams with the same size and destination are joined to one GSO message (generic
// segmentation offload); only the last datagram in it may be smaller. The kernel processes a GSO message as a single
// packet. It splits the packet into datagrams only when the packet leaves the system, or if the receiving socket has no
// GRO.
type outgoing struct {
	messages     [batchSize]message
	controls     [batchSize]control
	destinations [batchSize]*destination
	loads        [batchSize]load
	// sizes[i] is the size in bytes of each datagram in messages[i]. Only the last datagram may be smaller.
	sizes [batchSize]int
	count int
	// segments are used to send the datagrams of a GSO message one by one if the kernel rejects the GSO message.
	// segmentBytes holds the buffer of each segment.
	segments     [batchSize]message
	segmentBytes [batchSize]unix.Iovec
}

// The method add adds datagrams for a destination. Each vector contains one datagram, or several datagrams that GRO has
// joined. sizes[i] is the size in bytes of each datagram in vectors[i]. The caller must not change the buffers until
// the messages have been sent.
func (o *outgoing) add(vectors []unix.Iovec, sizes []int, d *destination) {
	for len(vectors) > 0 {
		n, carried := 1, loadOf(int(vectors[0].Len), sizes[0])
		if !d.noGSO {
			n, carried = coalesce(vectors, sizes)
		}
		o.put(vectors[:n], sizes[0], carried, d)
		vectors, sizes = vectors[n:], sizes[n:]
	}
}

// coalesce returns how many of the vectors, starting with the first, can be sent as one GSO message. It also returns
// the number and the total size of the datagrams in them.
func coalesce(vectors []unix.Iovec, sizes []int) (n int, carried load) {
	size := sizes[0]
	carried = loadOf(int(vectors[0].Len), size)
	for n = 1; n < len(vectors); n++ {
		// Start a new message after a smaller datagram, because only the last datagram of a GSO message may be smaller.
		// An empty datagram also needs its own message: in a GSO message, it would be lost.
		if size == 0 || carried.bytes%size != 0 || vectors[n].Len == 0 {
			break
		}
		next := loadOf(int(vectors[n].Len), sizes[n])
		fits := sizes[n] == size || sizes[n] < size && next.datagrams == 1
		if next.add(carried); !fits || next.bytes > maxGSOBytes || next.datagrams > batchSize {
			break
		}
		carried = next
	}
	return n, carried
}

func (o *outgoing) put(vectors []unix.Iovec, size int, carried load, d *destination) {
	i := o.count
	o.count++
	o.destinations[i], o.loads[i], o.sizes[i] = d, carried, size
	m := &o.messages[i]
	d.address(m, &o.controls[i])
	m.Iov = &vectors[0]
	m.SetIovlen(len(vectors))
	if carried.datagrams == 1 {
		return
	}
	data, length := o.controls[i].add(d.controlLength, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
	*(*uint16)(data) = uint16(size)
	m.Control = (*byte)(unsafe.Pointer(&o.controls[i]))
	m.SetControllen(length)
}

// address sets the destination address and the control data of a message.
func (d *destination) address(m *message, c *control) {
	m.Msghdr = unix.Msghdr{}
	if d.nameLength > 0 {
		m.Name, m.Namelen = &d.name[0], d.nameLength
	}
	if d.controlLength > 0 {
		*c = d.control
		m.Control = (*byte)(unsafe.Pointer(c))
		m.SetControllen(d.controlLength)
	}
}

// isGSO reports whether the message with the index i is a GSO message, which contains more than one datagram.
func (o *outgoing) isGSO(i int) bool { return o.loads[i].datagrams > 1 }

// total returns the number and the total size of the datagrams in o.messages[from:to].
func (o *outgoing) total(from, to int) (sum load) {
	for i := from; i < to; i++ {
		sum.add(o.loads[i])
	}
	return sum
}

// sendSegments sends the datagrams of a rejected GSO message one by one, and disables GSO for their destination. It
// returns the number of datagrams and bytes that were sent.
func (o *outgoing) sendSegments(socket, i int) (sent load) {
	o.destinations[i].noGSO = true
	n, size := 0, o.sizes[i]
	for _, whole := range unsafe.Slice(o.messages[i].Iov, int(o.messages[i].Iovlen)) {
		for at := 0; at < int(whole.Len); at += size {
			if n == batchSize {
				sent.add(o.sendEach(socket, n))
				n = 0
			}
			o.segmentBytes[n].Base = (*byte)(unsafe.Add(unsafe.Pointer(whole.Base), at))
			o.segmentBytes[n].SetLen(min(size, int(whole.Len)-at))
			o.destinations[i].address(&o.segments[n], &o.controls[i])
			o.segments[n].Iov = &o.segmentBytes[n]
			o.segments[n].SetIovlen(1)
			n++
		}
	}
	sent.add(o.sendEach(socket, n))
	return sent
}

// sendEach sends the first n segments one by one, and skips the segments that the kernel rejects. It returns the number
// of datagrams and bytes that were sent.
func (o *outgoing) sendEach(socket, n int) (sent load) {
	for at := 0; at < n; {
		passed, err := sendMessages(socket, o.segments[at:n])
		for _, each := range o.segmentBytes[at : at+passed] {
			sent.add(load{1, int(each.Len)})
		}
		if at += passed; err != nil {
			at++
		}
	}
	return sent
}
