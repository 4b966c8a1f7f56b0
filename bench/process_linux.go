package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endWithParent makes the kernel send the signal to a process when its parent ends for any reason.
func endWithParent(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: signal}
}

// ethernetSegment is the TCP segment size of clients on a network. The kernel derives the size of send buffers from it.
// With the segment size of the loopback device, a server could write 2.5 MB to a client that reads nothing.
const ethernetSegment = 1460

// asOnNetwork sets the segment size of a client on a network for a new socket.
func asOnNetwork(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(socket uintptr) {
		failed = syscall.SetsockoptInt(int(socket), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, ethernetSegment)
	})
	return errors.Join(err, failed)
}

// processorTime returns the user and system time of a process and its children. It returns 0 if p is nil.
func (p *process) processorTime() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	processes, err := p.family()
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, process := range processes {
		spent, err := timeOf(process)
		if err != nil {
			return 0, err
		}
		total += spent
	}
	return total, nil
}

// family returns the process IDs of a process and its children.
func (p *process) family() ([]string, error) {
	own := strconv.Itoa(p.command.Process.Pid)
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	family := []string{own}
	for _, process := range processes {
		if parentOf(process) == own {
			family = append(family, filepath.Base(process))
		}
	}
	return family, nil
}

// timeOf returns the sum over the threads of a process, since Linux counts nanoseconds for threads, but only hundredths
// of a second for processes. Threads that have ended are missing. The measured processes end no threads while they
// work.
func timeOf(process string) (time.Duration, error) {
	threads, err := filepath.Glob("/proc/" + process + "/task/*/schedstat")
	if err != nil || len(threads) == 0 {
		return 0, errors.Join(fmt.Errorf("process %s has no schedstat", process), err)
	}
	var total time.Duration
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		onProcessor, _, _ := strings.Cut(string(text), " ")
		spent, err := strconv.ParseInt(onProcessor, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading %s: %w", name, err)
		}
		total += time.Duration(spent)
	}
	return total, nil
}

// parentOf returns the process ID of the parent, or "" if the process has ended. A process that has ended is not a
// measured one.
func parentOf(process string) string {
	text, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		return ""
	}
	// The name of the program is in parentheses and may contain any character. The state and the parent follow it.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}
