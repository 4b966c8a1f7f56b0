//go:build !linux

package main

import (
	"errors"
	"syscall"
	"time"
)

// endWithParent has no way to do it here: a benchmark that is killed leaves processes behind, one that is stopped does not.
func endWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }

// processorTime is not asked for here: TCP and UDP are measured on Linux only.
func (p *process) processorTime() (time.Duration, error) {
	return 0, errors.New("only Linux tells the processor time of a process and its children")
}
