//go:build unix

package budget

import "syscall"

// openFiles returns the maximum number of open files of the process, or 0 if it is unknown. The Go runtime has already
// raised the soft limit to the hard limit.
func openFiles() int64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || int64(limit.Cur) < 0 {
		return 0
	}
	return int64(limit.Cur)
}
