package main

import (
	"encoding/binary"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// takeTrains sets whether the kernel delivers several datagrams of one size as one message.
func takeTrains(conn *net.UDPConn, take bool) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var refused error
	value := 0
	if take {
		value = 1
	}
	err = raw.Control(func(fd uintptr) { refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, value) })
	if err != nil {
		return err
	}
	return os.NewSyscallError("setsockopt", refused)
}

// trainControl returns the control data with which the kernel splits one message into datagrams of the given size.
func trainControl(size int) []byte {
	control := make([]byte, unix.CmsgSpace(2))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
	return control
}

// trainSize returns the size of the datagrams in a received message from its control data. It returns 0 if the message
// is a single datagram.
func trainSize(control []byte) int {
	if len(control) < unix.CmsgLen(4) {
		return 0
	}
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	if header.Level != unix.IPPROTO_UDP || header.Type != unix.UDP_GRO {
		return 0
	}
	return int(binary.NativeEndian.Uint32(control[unix.CmsgLen(0):]))
}

// trainControlRoom is the size of the control data that trainSize reads.
var trainControlRoom = unix.CmsgSpace(4)
