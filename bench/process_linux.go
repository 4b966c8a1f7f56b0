package main

import "syscall"

// endWithParent lets the kernel end a process when this one ends, however it ends.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
