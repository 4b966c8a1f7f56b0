package main

import (
	"encoding/binary"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// takeTrains says whether the kernel gives a socket several datagrams of one size as one message.
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

// trainControl is what the kernel is told beside a number of datagrams that are sent as one.
func trainControl(size int) []byte {
	control := make([]byte, unix.CmsgSpace(2))
	header := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
	header.Level, header.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	header.SetLen(unix.CmsgLen(2))
	binary.NativeEndian.PutUint16(control[unix.CmsgLen(0):], uint16(size))
	return control
}

// trainSize reads the size of each datagram in what the kernel tells beside a number of them. It is zero if there is
// one.
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

// trainControlRoom is enough for what trainSize reads.
var trainControlRoom = unix.CmsgSpace(4)
