package kubelet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// InitCommand is the subcommand that runs SandboxMain.
const InitCommand = "container-init"

// sandbox is what a container's process needs to set itself up. It reads it as JSON from file descriptor 3, in namespaces
// that its parent has made; descriptor 4 is the network of the pod, or of its node.
type sandbox struct {
	// Root is an empty folder, on which the container's root is mounted.
	Root     string
	Hostname string
	Mounts   []mount
	// Program is run when the container has no such command as Args names.
	Program string
	Dir     string
	Args    []string
	Env     []string
}

// mount shows Source, a file or folder of this machine, as Target in the container.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// hostFolders are in every container, for programs need libraries, certificates and perhaps a shell. Each container sees
// only its own changes to them.
var hostFolders = []string{"/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc"}

// SandboxMain sets the sandbox up and becomes the container's program. It returns only when that did not work.
func SandboxMain() error {
	// The program gets the namespaces of the thread that becomes it.
	runtime.LockOSThread()
	var s sandbox
	if err := json.NewDecoder(os.NewFile(3, "sandbox")).Decode(&s); err != nil {
		return fmt.Errorf("reading the sandbox: %w", err)
	}
	if err := unix.Setns(4, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("joining the pod's network: %w", err)
	}
	if err := s.enterRoot(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
		return err
	}
	if err := os.Chdir(s.Dir); err != nil {
		return err
	}
	// A manifest names the command that is in its image, which is not here; the program stands for it.
	program, err := lookPath(s.Args[0], s.Env)
	if err != nil {
		program = s.Program
	}
	// The program gets the standard streams only.
	unix.CloseOnExec(3)
	unix.CloseOnExec(4)
	return unix.Exec(program, s.Args, s.Env)
}

func lookPath(name string, env []string) (string, error) {
	for _, pair := range env {
		if path, found := strings.CutPrefix(pair, "PATH="); found {
			if err := os.Setenv("PATH", path); err != nil {
				return "", err
			}
		}
	}
	return exec.LookPath(name)
}

func (s *sandbox) enterRoot() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", s.Root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for _, dir := range []string{"tmp", "run", "var/tmp", "proc", "dev", "root"} {
		if err := os.MkdirAll(filepath.Join(s.Root, dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Symlink("../run", filepath.Join(s.Root, "var/run")); err != nil {
		return err
	}
	for _, dir := range hostFolders {
		if err := s.shareFolder(dir); err != nil {
			return fmt.Errorf("sharing %s: %w", dir, err)
		}
	}
	for _, m := range append([]mount{{Source: "/dev", Target: "/dev"}}, s.Mounts...) {
		if err := m.bind(s.Root); err != nil {
			return fmt.Errorf("mounting %s: %w", m.Target, err)
		}
	}
	if err := unix.Mount("proc", filepath.Join(s.Root, "proc"), "proc", 0, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := unix.Chroot(s.Root); err != nil {
		return err
	}
	return os.Chdir("/")
}

// shareFolder puts an overlay over a folder of this machine, for the container's changes. Links, as /bin may be one, stay
// links. A folder for which the kernel allows no overlay is read-only, and volumes cannot be mounted in it.
func (s *sandbox) shareFolder(dir string) error {
	target := filepath.Join(s.Root, dir)
	if link, err := os.Readlink(dir); err == nil {
		return os.Symlink(link, target)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	upper, work := filepath.Join(s.Root, ".upper", dir), filepath.Join(s.Root, ".work", dir)
	for _, path := range []string{target, upper, work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", dir, upper, work)
	for _, options := range []string{layers, layers + ",userxattr"} {
		if err := unix.Mount("overlay", target, "overlay", 0, options); err == nil {
			return nil
		}
	}
	return mount{Source: dir, Target: dir, ReadOnly: true}.bind(s.Root)
}

func (m mount) bind(root string) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target := filepath.Join(root, m.Target)
	if err := makeMountPoint(target, info.IsDir()); err != nil {
		return err
	}
	// A user namespace may bind mounts that it inherited only together with those below them.
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !m.ReadOnly {
		return nil
	}
	attributes := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, attributes)
}

func makeMountPoint(path string, isDir bool) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	if isDir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o755)
}
