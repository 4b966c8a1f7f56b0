//go:build !linux

package main

import "syscall"

// endWithParent has no way to do it here: a benchmark that is killed leaves processes behind, one that is stopped does not.
func endWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }
