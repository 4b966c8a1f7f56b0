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

// The file descriptors that a container's process inherits, in addition to the standard streams.
const (
	// descriptionFD contains the sandbox as JSON.
	descriptionFD = iota + 3
	// faultFD receives the reason if no program can be started. Otherwise it receives nothing.
	faultFD
	// networkFD is the network of the pod, or of its node.
	networkFD
)

// runcErrorCode is the exit code if the kernel cannot execute the program.
const runcErrorCode = 255

// sandbox describes how a container's process sets itself up. Its parent has already created the namespaces.
type sandbox struct {
	root
	Hostname string
	// Program is run if the container does not have the command in Args. It is empty for an image, which has its own
	// files.
	Program    string
	Dir        string
	Args       []string
	Env        []string
	Privileges privileges
}

// SandboxMain sets up the sandbox and executes the container's program. It returns only if the setup fails, and then
// also reports the reason to its parent. If the kernel cannot execute the program, the reason is only in the log of the
// container, as with runc.
func SandboxMain() error {
	// The program gets the namespaces and the privileges of the thread that executes it.
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
	// The kernel closes faultFD when the program starts, so that the parent can run hooks.
	err = unix.Exec(program, s.Args, s.Env)
	runtime.KeepAlive(fault)
	fmt.Fprintln(os.Stderr, &os.PathError{Op: "exec", Path: program, Err: err})
	os.Exit(runcErrorCode)
	return nil
}

// enter sets up everything and returns the path of the program.
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
	// The command in a manifest belongs to its image, which is not available here, so Program replaces it.
	if err != nil && s.Program != "" {
		return s.Program, nil
	}
	return program, err
}

// ownStreams allows the user of the container to open its log again, for example as /dev/stdout.
func (s *sandbox) ownStreams() error {
	for _, fd := range []int{unix.Stdout, unix.Stderr} {
		if err := unix.Fchown(fd, s.Privileges.UID, -1); err != nil {
			return fmt.Errorf("giving the log to the user: %w", err)
		}
	}
	return nil
}

// lookPath finds a program in the PATH of an environment, which differs from the PATH of this process.
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
