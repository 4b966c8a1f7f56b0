package main

import "syscall"

// endWithParent lets the kernel send a process a signal when this one ends, however it ends.
func endWithParent(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: signal}
}
