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
// it where it leaves the system, or where somebody receives it. The last one may be smaller.
type outgoing struct {
	messages [batchSize]message
	controls [batchSize]control
	ways     [batchSize]*way
	loads    [batchSize]load
	count    int
	// alone is for a datagram of a train that did not pass.
	alone [1]message
}

// add takes datagrams, each a vector, of which the memory stays as it is until they are sent.
func (o *outgoing) add(datagrams []unix.Iovec, w *way) {
	for len(datagrams) > 0 {
		n := 1
		if !w.single {
			n = train(datagrams)
		}
		o.put(datagrams[:n], w)
		datagrams = datagrams[n:]
	}
}

// train returns how many datagrams the first train has.
func train(datagrams []unix.Iovec) int {
	size, sum := datagrams[0].Len, datagrams[0].Len
	for n, next := range datagrams {
		if n == 0 {
			continue
		}
		// One of no bytes would be lost in a train.
		if sum += next.Len; next.Len == 0 || next.Len > size || sum > longestTrain {
			return n
		}
		if next.Len < size {
			return n + 1
		}
	}
	return len(datagrams)
}

func (o *outgoing) put(datagrams []unix.Iovec, w *way) {
	i := o.count
	o.count++
	o.ways[i], o.loads[i] = w, load{datagrams: len(datagrams)}
	for j := range datagrams {
		o.loads[i].bytes += int(datagrams[j].Len)
	}
	m := &o.messages[i]
	w.address(m, &o.controls[i])
	m.Iov = &datagrams[0]
	m.SetIovlen(len(datagrams))
	if len(datagrams) == 1 {
		return
	}
	data, length := o.controls[i].add(w.controlLength, unix.IPPROTO_UDP, unix.UDP_SEGMENT, 2)
	*(*uint16)(data) = uint16(datagrams[0].Len)
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

// singly sends the datagrams of a train that did not pass, and those that go the same way later will make none. It returns
// what was sent.
func (o *outgoing) singly(socket, i int) (sent load) {
	o.ways[i].single = true
	m := &o.alone[0]
	datagrams := unsafe.Slice(o.messages[i].Iov, o.loads[i].datagrams)
	for j := range datagrams {
		o.ways[i].address(m, &o.controls[i])
		m.Iov = &datagrams[j]
		m.SetIovlen(1)
		if n, _ := sendMessages(socket, o.alone[:]); n > 0 {
			sent.add(load{1, int(datagrams[j].Len)})
		}
	}
	return sent
}
