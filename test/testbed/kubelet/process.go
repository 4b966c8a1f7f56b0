package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/k8singress/k8singress/test/testbed/network"
)

// process is one run of a container. It is the first process of a PID namespace, so its child processes end with it.
type process struct {
	cmd      *exec.Cmd
	sandbox  sandbox
	started  time.Time
	done     chan struct{}
	finished time.Time
	exitCode int32
}

// startProcess starts a sandbox in a network. Its output is appended to the file log.
func startProcess(s sandbox, net *network.Namespace, log string) (*process, error) {
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
	fault, faultIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer fault.Close()
	p, err := startWith(s, []*os.File{description, faultIn, joined}, log)
	if err := errors.Join(err, faultIn.Close()); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Args[0], err)
	}
	// The pipe is closed when the program starts.
	if message, _ := io.ReadAll(fault); len(message) > 0 {
		<-p.done
		return nil, fmt.Errorf("error during container init: %s", message)
	}
	return p, nil
}

// startWith passes files to the child. The output goes through a pipe, which the container can open again but cannot
// truncate, as it could a file.
func startWith(s sandbox, files []*os.File, log string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("/proc/self/exe", InitCommand)
	piped := struct{ io.Writer }{output}
	cmd.Stdout, cmd.Stderr = piped, piped
	cmd.ExtraFiles = files
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:     true,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, output.Close())
	}
	p := &process{cmd: cmd, sandbox: s, started: time.Now(), done: make(chan struct{})}
	go func() {
		p.wait()
		_ = output.Close()
	}()
	return p, nil
}

// describe returns the read end of a pipe with the description of the sandbox for the child.
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

// exitCode returns the exit code. It is 128 plus the number of the signal if a signal ended the process, as in a shell.
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

// run executes a command in the container, for example for a probe or a hook.
func (p *process) run(ctx context.Context, argv []string, out io.Writer) error {
	cmd := p.command(ctx, argv)
	cmd.Stdout, cmd.Stderr = out, out
	// Do not wait for a child of the command that keeps the pipe open.
	cmd.WaitDelay = time.Second
	if err := p.start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// command returns a command for start. It is killed when ctx ends.
func (p *process) command(ctx context.Context, argv []string) *exec.Cmd {
	// The path is resolved later, in the container.
	cmd := exec.CommandContext(ctx, "/")
	cmd.Args, cmd.Env = argv, p.sandbox.Env
	return cmd
}

// start starts a command in the container, with the privileges of its program.
func (p *process) start(cmd *exec.Cmd) error {
	if !p.running() {
		return errors.New("container is not running")
	}
	return inThread(func() error {
		cmd.Err = p.enter()
		if cmd.Err == nil {
			cmd.Path, cmd.Err = lookPath(cmd.Args[0], cmd.Env)
		}
		// If Start fails, it closes the pipes.
		return cmd.Start()
	})
}

// enter moves this thread into the namespaces of the container. The PID namespace applies only to processes that the
// thread starts.
func (p *process) enter() error {
	var namespaces []*os.File
	for _, name := range []string{"uts", "ipc", "net", "pid", "mnt"} {
		file, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", p.cmd.Process.Pid, name))
		if err != nil {
			return err
		}
		defer file.Close()
		namespaces = append(namespaces, file)
	}
	// The kernel requires this, because a thread that shares its root with other threads cannot enter another mount
	// namespace.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	for _, file := range namespaces {
		if err := unix.Setns(int(file.Fd()), 0); err != nil {
			return fmt.Errorf("joining %s of the container: %w", file.Name(), err)
		}
	}
	if err := unix.Chdir(p.sandbox.Dir); err != nil {
		return err
	}
	return p.sandbox.Privileges.apply()
}
