package kubelet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// InitCommand is the subcommand that runs SandboxMain.
const InitCommand = "container-init"

// The file descriptors that a container's process has from its parent besides the standard streams.
const (
	// descriptionFD has the sandbox as JSON.
	descriptionFD = iota + 3
	// faultFD takes the reason why there is no program to run, and nothing if there is one.
	faultFD
	// networkFD is the network of the pod, or of its node.
	networkFD
)

// runcErrorCode is the exit code of a program that the kernel does not run.
const runcErrorCode = 255

// sandbox is what a container's process needs to set itself up, in namespaces that its parent has made.
type sandbox struct {
	root
	Hostname string
	// Program is run when the container has no such command as Args names. It is empty for an image, which has its own
	// files.
	Program    string
	Dir        string
	Args       []string
	Env        []string
	Privileges privileges
}

// SandboxMain sets the sandbox up and becomes the container's program. It returns only when that did not work, for a
// reason that its parent hears, too. What the kernel has against the program itself stands in the log of the container
// alone, as with runc.
func SandboxMain() error {
	// The program gets the namespaces and the privileges of the thread that becomes it.
	runtime.LockOSThread()
	var s sandbox
	if err := json.NewDecoder(os.NewFile(descriptionFD, "sandbox")).Decode(&s); err != nil {
		return fmt.Errorf("reading the sandbox: %w", err)
	}
	for _, fd := range []int{descriptionFD, faultFD, networkFD} {
		unix.CloseOnExec(fd)
	}
	fault := os.NewFile(faultFD, "fault")
	program, err := s.enter()
	if err != nil {
		_, wrong := io.WriteString(fault, err.Error())
		return errors.Join(err, wrong)
	}
	// The program closes faultFD as it begins: no hook comes before it.
	err = unix.Exec(program, s.Args, s.Env)
	runtime.KeepAlive(fault)
	fmt.Fprintln(os.Stderr, &os.PathError{Op: "exec", Path: program, Err: err})
	os.Exit(runcErrorCode)
	return nil
}

// enter returns the path of the program.
func (s *sandbox) enter() (string, error) {
	if err := unix.Setns(networkFD, unix.CLONE_NEWNET); err != nil {
		return "", fmt.Errorf("joining the pod's network: %w", err)
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return "", err
	}
	if err := s.root.enter(s.Dir); err != nil {
		return "", err
	}
	if err := s.ownStreams(); err != nil {
		return "", err
	}
	if err := s.Privileges.apply(); err != nil {
		return "", err
	}
	program, err := lookPath(s.Args[0], s.Env)
	// A manifest names the command that is in its image, which is not here; the program stands for it.
	if err != nil && s.Program != "" {
		return s.Program, nil
	}
	return program, err
}

// ownStreams lets the user of the container open its log again, such as by /dev/stdout.
func (s *sandbox) ownStreams() error {
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Fchown(fd, s.Privileges.UID, -1); err != nil {
			return fmt.Errorf("giving the log to the user: %w", err)
		}
	}
	return nil
}

// lookPath finds a program by the PATH of an environment, which is not that of this process.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	i := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, "PATH=") })
	if i >= 0 {
		for _, folder := range filepath.SplitList(strings.TrimPrefix(env[i], "PATH=")) {
			if path, err := exec.LookPath(filepath.Join("/", folder, name)); err == nil {
				return path, nil
			}
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}
