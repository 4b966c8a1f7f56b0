package kubelet

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// apply sets the privileges of this thread, and of the program that it executes, in the same order as runc. It uses raw
// system calls, because package syscall would change all threads. As with containerd, capabilities that are permitted
// but not ambient are kept; a program of a user other than root gets only those that its file requests.
func (p privileges) apply() error {
	permitted, err := permittedNow()
	if err != nil {
		return fmt.Errorf("reading the capabilities: %w", err)
	}
	p.Capabilities &= permitted
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"dropping capabilities", p.dropBounding},
		{"keeping capabilities", func() error { return unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0) }},
		{"becoming the user", p.switchUser},
		{"setting capabilities", p.setCapabilities},
		{"forbidding new privileges", p.forbidNew},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// capabilityHeader selects the calling thread.
var capabilityHeader = unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}

// permittedNow returns the permitted capabilities of this thread.
func permittedNow() (uint64, error) {
	header, data := capabilityHeader, [2]unix.CapUserData{}
	err := unix.Capget(&header, &data[0])
	return uint64(data[0].Permitted) | uint64(data[1].Permitted)<<32, err
}

func (p privileges) dropBounding() error {
	for i := range unix.CAP_LAST_CAP + 1 {
		if p.Capabilities&(1<<i) != 0 {
			continue
		}
		// Older kernels have fewer capabilities.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(i), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}

// switchUser changes the user and the groups. It does nothing in a user namespace with only one user, in which groups
// cannot be changed.
func (p privileges) switchUser() error {
	if oneUser() {
		return nil
	}
	groups := make([]uint32, 0, len(p.Groups))
	for _, group := range p.Groups {
		groups = append(groups, uint32(group))
	}
	first := unsafe.Pointer(unsafe.SliceData(groups))
	if _, _, fault := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); fault != 0 {
		return fault
	}
	gid, uid := uintptr(p.GID), uintptr(p.UID)
	if _, _, fault := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); fault != 0 {
		return fault
	}
	if _, _, fault := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); fault != 0 {
		return fault
	}
	return nil
}

func (p privileges) setCapabilities() error {
	header, data := capabilityHeader, [2]unix.CapUserData{}
	for i := range data {
		half := uint32(p.Capabilities >> (32 * i))
		data[i].Permitted, data[i].Effective = half, half
	}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

func (p privileges) forbidNew() error {
	if !p.NoNewPrivileges {
		return nil
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// inThread runs a function in a thread that ends with it. After the thread has entered a container, no other goroutine
// may use it.
func inThread(f func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		result <- f()
	}()
	return <-result
}
