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

// endWithParent lets the kernel send a process a signal when this one ends, however it ends.
func endWithParent(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: signal}
}

// ethernetSegment is the segment size of clients on a network. The kernel sizes send buffers by it: with the segments
// of the loopback device a server could write 2.5 MB to a client that reads nothing.
const ethernetSegment = 1460

// asOnNetwork gives a new socket the segment size of a client on a network.
func asOnNetwork(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(socket uintptr) {
		failed = syscall.SetsockoptInt(int(socket), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, ethernetSegment)
	})
	return errors.Join(err, failed)
}

// processorTime returns what a process and its children have had of the processors, in their own code and in the
// kernel's. It is zero for no process.
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

// family returns the numbers of a process and of its children.
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

// timeOf adds up the threads of a process. Linux counts each in nanoseconds; for the process there are only hundredths
// of a second. Threads that have ended are missing: none of those measured here ends any while it works.
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

// parentOf returns nothing for a process that has ended: it was not one that is measured.
func parentOf(process string) string {
	text, err := os.ReadFile(filepath.Join(process, "stat"))
	if err != nil {
		return ""
	}
	// The name of the program stands in brackets, and may have anything in it. Then come the state and the parent.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return ""
	}
	return string(fields[1])
}
