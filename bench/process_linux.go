package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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

// clockTick is what /proc counts processor time in: USER_HZ, which is 100 for every program.
const clockTick = time.Second / 100

// processorTime returns what a process and its children have had of the processors, in their own code and in the kernel's.
// It is zero for no process.
func (p *process) processorTime() (time.Duration, error) {
	if p == nil {
		return 0, nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	own := strconv.Itoa(p.command.Process.Pid)
	var total time.Duration
	for _, name := range stats {
		parent, spent, err := readStat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
			// It has ended, and was not one of ours: those run on.
		case err != nil:
			return 0, err
		case parent == own || strings.HasPrefix(name, "/proc/"+own+"/"):
			total += spent
		}
	}
	return total, nil
}

func readStat(name string) (parent string, spent time.Duration, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", 0, err
	}
	// The name of the program stands in brackets, and may have anything in it. What follows is counted from field 3.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const ppid, utime, stime = 4 - 3, 14 - 3, 15 - 3
	if len(fields) <= stime {
		return "", 0, fmt.Errorf("%s has only %d fields", name, len(fields))
	}
	for _, field := range []int{utime, stime} {
		ticks, err := strconv.ParseInt(string(fields[field]), 10, 64)
		if err != nil {
			return "", 0, fmt.Errorf("reading %s: %w", name, err)
		}
		spent += time.Duration(ticks) * clockTick
	}
	return string(fields[ppid]), spent, nil
}
