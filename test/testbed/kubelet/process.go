package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// process is one run of a container, and the first process of a PID namespace: what it starts ends with it.
type process struct {
	cmd      *exec.Cmd
	env      []string
	started  time.Time
	done     chan struct{}
	finished time.Time
	exitCode int32
}

// startProcess starts a sandbox in a network. It writes to the end of the file log.
func startProcess(s sandbox, net *network.Namespace, log string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	description, err := describe(s)
	if err != nil {
		return nil, err
	}
	defer description.Close()
	joined, err := net.File()
	if err != nil {
		return nil, err
	}
	defer joined.Close()
	cmd := exec.Command("/proc/self/exe", InitCommand)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.ExtraFiles = []*os.File{description, joined}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Args[0], err)
	}
	p := &process{cmd: cmd, env: s.Env, started: time.Now(), done: make(chan struct{})}
	go p.wait()
	return p, nil
}

// describe returns the end of a pipe from which the child reads what it is to become.
func describe(s sandbox) (*os.File, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	go func() {
		_, _ = writer.Write(data)
		_ = writer.Close()
	}()
	return reader, nil
}

func (p *process) wait() {
	_ = p.cmd.Wait()
	p.finished = time.Now()
	p.exitCode = exitCode(p.cmd.ProcessState)
	close(p.done)
}

// exitCode is 128 and the signal's number for a process that a signal ended, as in a shell.
func exitCode(state *os.ProcessState) int32 {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(state.ExitCode())
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// run executes a command in the container, as a probe or a hook.
func (p *process) run(ctx context.Context, argv []string, out io.Writer) error {
	cmd, err := p.command(ctx, argv)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// command returns what runs a command in the container until ctx ends.
func (p *process) command(ctx context.Context, argv []string) (*exec.Cmd, error) {
	if !p.running() {
		return nil, errors.New("container is not running")
	}
	target := strconv.Itoa(p.cmd.Process.Pid)
	flags := []string{"--target", target, "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd", "--"}
	cmd := exec.CommandContext(ctx, "nsenter", append(flags, argv...)...)
	cmd.Env = p.env
	// The command may leave a child behind that holds the pipe; it is not waited for.
	cmd.WaitDelay = time.Second
	return cmd, nil
}
