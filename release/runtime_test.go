package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asRuntime is the environment variable that makes the test binary act as a container runtime. Its value is a container
// as JSON.
const asRuntime = "K8SINGRESS_TEST_CONTAINER"

// container describes a process in an unpacked image, with the privileges that a container runtime gives it.
type container struct {
	// Root is the folder of the unpacked image.
	Root string
	// Bounding lists the capabilities that the process can ever get. Permitted lists the capabilities that it has
	// before the binary starts.
	Bounding, Permitted []int
	NoNewPrivileges     bool
	Command             []string
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(asRuntime); ok {
		var c container
		err := json.Unmarshal([]byte(text), &c)
		if err == nil {
			err = c.become()
		}
		fmt.Fprintln(os.Stderr, "container:", err)
		os.Exit(125)
	}
	status := m.Run()
	if err := os.RemoveAll(builtIn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// command returns the command for the process in new network and mount namespaces. It needs root.
func (c container) command(t *testing.T) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = []string{asRuntime + "=" + string(text)}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS,
		Pdeathsig: syscall.SIGKILL}
	return command
}

// become turns this process into the process of the container, with the same steps in the same order as runc.
// Privileges belong to the thread that executes the binary, so the thread is locked. become returns only if it fails.
func (c container) become() error {
	runtime.LockOSThread()
	for _, step := range []func() error{loopbackUp, c.mount, c.dropBounding, switchUser, c.setPermitted,
		c.forbidNewPrivileges} {
		if err := step(); err != nil {
			return err
		}
	}
	environment := []string{"PATH=/usr/bin", "XDG_CONFIG_HOME=/data", "XDG_DATA_HOME=/data"}
	if err := unix.Exec(c.Command[0], c.Command, environment); err != nil {
		return fmt.Errorf("starting %s: %w", c.Command[0], err)
	}
	return nil
}

func loopbackUp() error {
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

// mount makes the root read-only, mounts the volumes of a pod, and changes the root to it.
func (c container) mount() error {
	for _, m := range []struct {
		source, target, kind string
		flags                uintptr
		data                 string
	}{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE, ""},
		{c.Root, c.Root, "", unix.MS_BIND, ""},
		{"/dev", c.Root + "/dev", "", unix.MS_BIND, ""},
		{"", c.Root, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""},
		{"tmpfs", c.Root + "/tmp", "tmpfs", 0, "mode=1777"},
		{"tmpfs", c.Root + "/data", "tmpfs", 0, "mode=0700,uid=101,gid=101"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mounting %s: %w", m.target, err)
		}
	}
	if err := unix.Chroot(c.Root); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	return unix.Chdir("/")
}

func (c container) dropBounding() error {
	for capability := range unix.CAP_LAST_CAP + 1 {
		if bits(c.Bounding)&(1<<capability) != 0 {
			continue
		}
		// Older kernels have fewer capabilities.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); err != nil &&
			!errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("dropping capability %d: %w", capability, err)
		}
	}
	return nil
}

func bits(capabilities []int) (set uint64) {
	for _, c := range capabilities {
		set |= 1 << c
	}
	return set
}

// switchUser changes the user of this thread only. The thread keeps its permitted capabilities.
func switchUser() error {
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("keeping capabilities: %w", err)
	}
	const user = 101
	for _, call := range [][4]uintptr{
		{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, user, user, user}, {unix.SYS_SETRESUID, user, user, user},
	} {
		if _, _, err := unix.RawSyscall(call[0], call[1], call[2], call[3]); err != 0 {
			return fmt.Errorf("changing the user: %w", err)
		}
	}
	return nil
}

func (c container) setPermitted() error {
	permitted := bits(c.Permitted)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	low, high := uint32(permitted), uint32(permitted>>32)
	data := [2]unix.CapUserData{{Permitted: low, Effective: low}, {Permitted: high, Effective: high}}
	if err := unix.Capset(&header, &data[0]); err != nil {
		return fmt.Errorf("setting capabilities: %w", err)
	}
	return nil
}

func (c container) forbidNewPrivileges() error {
	if !c.NoNewPrivileges {
		return nil
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// unpacked returns a folder with the files of the image, and a Caddyfile at the path where a pod mounts its Caddyfile.
func unpacked(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: running the image needs root, for its owners, its capability and namespaces")
	}
	root := t.TempDir()
	// Other users cannot read the temporary folders of tests.
	for folder := root; folder != os.TempDir() && folder != "/"; folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	extract(t, onlyImage(t, filepath.Join(imageFolder(t), "dist", "image")), root)
	for _, folder := range []string{"dev", "etc/caddy"} {
		if err := os.Mkdir(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	caddyfile, err := os.ReadFile("testdata/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "etc", "caddy", "Caddyfile"), caddyfile, 0o644); err != nil {
		t.Fatal(err)
	}
	return root
}
