package k8singress_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownNetwork is the environment variable that marks a test process with its own network namespace.
const ownNetwork = "K8SINGRESS_TEST_OWN_NETWORK"

func inItsOwnNetwork() bool { return os.Getenv(ownNetwork) != "" }

// ranInItsOwnNetwork runs the calling test again in a process with its own network namespace, in which all ports are
// free. It returns false in that process, and if no network namespace can be created.
func ranInItsOwnNetwork(t *testing.T) bool {
	t.Helper()
	if inItsOwnNetwork() {
		if err := startLoopback(); err != nil {
			t.Fatal(err)
		}
		return false
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	command.Env = append(os.Environ(), ownNetwork+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	if os.Getuid() != 0 {
		command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := command.CombinedOutput()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		t.Fatalf("in a network of its own: %s", out)
	}
	if err != nil {
		t.Logf("without a network of its own: %v", err)
	}
	return err == nil
}

func startLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return fmt.Errorf("opening a socket: %w", err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("starting the loopback interface: %w", err)
	}
	return nil
}
