//go:build !linux

package main

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// endWithParent has no equivalent on this system. If the benchmark is killed, its processes keep running; if it is
// interrupted, they end.
func endWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }

// asOnNetwork does nothing. The segment size stays that for the loopback device.
func asOnNetwork(_, _ string, _ syscall.RawConn) error { return nil }

// processorTime returns 0, because the time is not known on this system.
func (p *process) processorTime() (time.Duration, error) { return 0, nil }

var errOnlyLinux = errors.New("TCP and UDP are measured on Linux only")

func keepApart(*process) (func() error, error) { return nil, errOnlyLinux }

func takeTrains(*net.UDPConn, bool) error { return errOnlyLinux }

func trainControl(int) []byte { return nil }

func trainSize([]byte) int { return 0 }

const trainControlRoom = 0
