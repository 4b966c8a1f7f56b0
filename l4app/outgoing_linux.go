package l4app

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestTrain is how many bytes a train has at most: what one datagram may have.
const longestTrain = 65535 - 40 - 8

// control is room for what the kernel is told of a message beside its bytes: the address that it comes from, and the size
// of the datagrams that it is to be cut into.
type control [64 / 8]uint64

// add puts a control message behind those that are there, and returns where the next one would begin.
func (c *control) add(at, level, kind, size int) (data unsafe.Pointer, end int) {
	header := (*unix.Cmsghdr)(unsafe.Add(unsafe.Pointer(c), at))
	header.Level, header.Type = int32(level), int32(kind)
	header.SetLen(unix.CmsgLen(size))
	return unsafe.Add(unsafe.Pointer(header), unix.CmsgLen(0)), at + unix.CmsgSpace(size)
}

// from tells which address a message comes from, and returns where the next control message would begin.
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

// way is how datagrams go to somebody. The zero value is for a socket that is connected to them.
type way struct {
	name          name
	nameLength    uint32
	control       control
	controlLength int
	// single says that trains do not pass.
	single bool
}

// outgoing are messages to send. Datagrams of one size that go one way make a train: the kernel carries it as one, and cuts
// it where it leaves the system, or where somebody receives it who does not know trains. The last one may be smaller.
type outgoing struct {
	messages [batchSize]message
	controls [batchSize]control
	ways     [batchSize]*way
	loads    [batchSize]load
	// sizes are those of the datagrams in each message.
	sizes [batchSize]int
	count int
	// alone are datagrams of a train that did not pass, and cuts their bytes.
	alone [batchSize]message
	cuts  [batchSize]unix.Iovec
}

// add takes datagrams and trains, each in a vector, with the sizes of the datagrams. Their memory stays as it is until they
// are sent.
func (o *outgoing) add(vectors []unix.Iovec, sizes []int, w *way) {
	for len(vectors) > 0 {
		n, carried := 1, loadOf(int(vectors[0].Len), sizes[0])
		if !w.single {
			n, carried = train(vectors, sizes)
		}
		o.put(vectors[:n], sizes[0], carried, w)
		vectors, sizes = vectors[n:], sizes[n:]
	}
}

// train returns how many vectors the first train has, and what it carries.
func train(vectors []unix.Iovec, sizes []int) (n int, carried load) {
	size := sizes[0]
	carried = loadOf(int(vectors[0].Len), size)
	for n = 1; n < len(vectors); n++ {
		// A smaller one is the last, and one of no bytes would be lost.
		if size == 0 || carried.bytes%size != 0 || vectors[n].Len == 0 {
			break
		}
		next := loadOf(int(vectors[n].Len), sizes[n])
		fits := sizes[n] == size || sizes[n] < size && next.datagrams == 1
		if next.add(carried); !fits || next.bytes > longestTrain || next.datagrams > batchSize {
			break
		}
		carried = next
	}
	return n, carried
}

func (o *outgoing) put(vectors []unix.Iovec, size int, carried load, w *way) {
	i := o.count
	o.count++
	o.ways[i], o.loads[i], o.sizes[i] = w, carried, size
	m := &o.messages[i]
	w.address(m, &o.controls[i])
	m.Iov = &vectors[0]
	m.SetIovlen(len(vectors))
	if carried.datagrams == 1 {
		return
	}
	data, length := o.controls[i].add(w.controlLength, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
	*(*uint16)(data) = uint16(size)
	m.Control = (*byte)(unsafe.Pointer(&o.controls[i]))
	m.SetControllen(length)
}

// address makes a message one that goes this way.
func (w *way) address(m *message, c *control) {
	m.Msghdr = unix.Msghdr{}
	if w.nameLength > 0 {
		m.Name, m.Namelen = &w.name[0], w.nameLength
	}
	if w.controlLength > 0 {
		*c = w.control
		m.Control = (*byte)(unsafe.Pointer(c))
		m.SetControllen(w.controlLength)
	}
}

// isTrain says whether a message is more than one datagram.
func (o *outgoing) isTrain(i int) bool { return o.loads[i].datagrams > 1 }

// total returns what the messages from one index to another carry.
func (o *outgoing) total(from, to int) (sum load) {
	for i := from; i < to; i++ {
		sum.add(o.loads[i])
	}
	return sum
}

// singly sends the datagrams of a train that did not pass, and those that go the same way later are put into none. It returns
// what was sent.
func (o *outgoing) singly(socket, i int) (sent load) {
	o.ways[i].single = true
	n, size := 0, o.sizes[i]
	for _, whole := range unsafe.Slice(o.messages[i].Iov, int(o.messages[i].Iovlen)) {
		for at := 0; at < int(whole.Len); at += size {
			if n == batchSize {
				sent.add(o.sendAlone(socket, n))
				n = 0
			}
			o.cuts[n].Base = (*byte)(unsafe.Add(unsafe.Pointer(whole.Base), at))
			o.cuts[n].SetLen(min(size, int(whole.Len)-at))
			o.ways[i].address(&o.alone[n], &o.controls[i])
			o.alone[n].Iov = &o.cuts[n]
			o.alone[n].SetIovlen(1)
			n++
		}
	}
	sent.add(o.sendAlone(socket, n))
	return sent
}

// sendAlone leaves out what is refused.
func (o *outgoing) sendAlone(socket, n int) (sent load) {
	for at := 0; at < n; {
		passed, err := sendMessages(socket, o.alone[at:n])
		for _, each := range o.cuts[at : at+passed] {
			sent.add(load{1, int(each.Len)})
		}
		if at += passed; err != nil {
			at++
		}
	}
	return sent
}
