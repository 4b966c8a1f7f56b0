package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// insideCommand is the subcommand that "up" runs in the new namespaces.
const insideCommand = "up-inside"

// settings holds the flags of "up".
type settings struct {
	dir   string
	keep  bool
	nodes int
	// rules map images to programs.
	rules []string
}

func parseSettings(args []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("up", flag.ContinueOnError)
	flags.StringVar(&s.dir, "dir", "", "the cluster's folder; leftovers of an earlier cluster are removed")
	flags.BoolVar(&s.keep, "keep", false, "keep logs and data when the cluster ends")
	flags.IntVar(&s.nodes, "nodes", 1, "how many nodes")
	what := "`NAME=PROGRAM [ARGUMENT ...]` or NAME=oci:LAYOUT: what to run for an image; can be given more than once"
	flags.Func("image", what, func(rule string) error {
		s.rules = append(s.rules, rule)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.dir == "" {
		return s, errors.New("--dir is needed")
	}
	if s.nodes < 1 || s.nodes > network.MaxNodes {
		return s, fmt.Errorf("--nodes must be between 1 and %d", network.MaxNodes)
	}
	dir, err := filepath.Abs(s.dir)
	s.dir = dir
	return s, err
}

// up runs the cluster in new namespaces until ctx ends. The kernel ends everything inside, even if this process is
// killed.
func up(ctx context.Context, args []string) error {
	s, err := parseSettings(args)
	if err != nil {
		return err
	}
	if err := clearFolder(s.dir); err != nil {
		return err
	}
	err = runInside(ctx, s.dir, args)
	if s.keep {
		return err
	}
	return errors.Join(err, clearFolder(s.dir))
}

func runInside(ctx context.Context, dir string, args []string) error {
	// The kernel sends the death signal when the thread that started the child ends, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append([]string{insideCommand}, args...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = namespaces()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("making the namespaces: %w", err)
	}
	pidFile := filepath.Join(dir, "pid")
	defer os.Remove(pidFile)
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// namespaces returns the attributes for new namespaces: network, mounts, processes, and users if this process does not
// run as root.
func namespaces() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID,
		Pdeathsig:  syscall.SIGKILL,
		// Ctrl-C in a terminal must reach only "up", which then ends the cluster in order.
		Setpgid: true,
	}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attributes
}

// clearFolder removes the files of an earlier cluster. It leaves other files in the folder.
func clearFolder(dir string) error {
	for _, name := range []string{"etcd", "pki", "pods", "images", "logs", "kubeconfig", "pid"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755)
}

// execInside executes a command in the network of the cluster.
func execInside(_ context.Context, args []string) error {
	var dir string
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.StringVar(&dir, "dir", "", "folder of the cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if dir == "" || flags.NArg() == 0 {
		return errors.New("--dir and a command are needed")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	argv, err := enter(dir, flags.Args())
	if err != nil {
		return err
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	if err := os.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig")); err != nil {
		return err
	}
	return syscall.Exec(program, argv, os.Environ())
}

// enter returns the command line of nsenter. The kernel does not allow a process with several threads, such as a Go
// program, to enter a user namespace.
func enter(dir string, command []string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		return nil, fmt.Errorf("is the cluster running? %w", err)
	}
	pid := strings.TrimSpace(string(data))
	argv := []string{"nsenter", "--target", pid, "--net"}
	theirs, err := os.Readlink(filepath.Join("/proc", pid, "ns/user"))
	if err != nil {
		return nil, err
	}
	if ours, _ := os.Readlink("/proc/self/ns/user"); ours != theirs {
		argv = append(argv, "--user", "--preserve-credentials")
	}
	return append(append(argv, "--"), command...), nil
}
