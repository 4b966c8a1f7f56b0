//go:build unix

package budget

import "syscall"

// openFiles is how many descriptors the process may have; Go has raised the limit as far as it goes. 0 is unknown.
func openFiles() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || int64(limit.Cur) < 0 {
		return 0
	}
	return int64(limit.Cur)
}
