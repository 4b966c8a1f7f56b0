//go:build !linux

package main

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// endWithParent has no way to do it here: a benchmark that is killed leaves processes behind, one that is stopped does
// not.
func endWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }

// asOnNetwork leaves the segment size of the loopback device.
func asOnNetwork(_, _ string, _ syscall.RawConn) error { return nil }

// processorTime is zero: it is not known here.
func (p *process) processorTime() (time.Duration, error) { return 0, nil }

var errOnlyLinux = errors.New("TCP and UDP are measured on Linux only")

func keepApart(*process) (func() error, error) { return nil, errOnlyLinux }

func takeTrains(*net.UDPConn, bool) error { return errOnlyLinux }

func trainControl(int) []byte { return nil }

func trainSize([]byte) int { return 0 }

const trainControlRoom = 0
