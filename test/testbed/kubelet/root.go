package kubelet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"
)

// root describes the files of a container.
type root struct {
	// Folder is an empty folder on which the root is mounted. Changes is a folder for what the container writes.
	Folder, Changes string
	// Image is the folder of an image. If it is empty, the container sees hostFolders.
	Image  string
	Mounts []mount
	protection
}

// mount shows Source, a file or folder of this machine, as Target in the container.
type mount struct {
	Source, Target string
	ReadOnly       bool
}

// hostFolders are in every container without an image, because programs need libraries, certificates and perhaps a
// shell. Each container sees only its own changes of them.
var hostFolders = []string{"/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc"}

// devices are the devices in every container. deviceLinks are the links beside them.
var (
	devices     = []string{"null", "zero", "full", "random", "urandom", "tty"}
	deviceLinks = map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	}
)

// enter creates the root, and makes dir in it the working directory of this process.
func (r *root) enter(dir string) error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", r.Changes, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mounting room for changes: %w", err)
	}
	mounted, err := r.mountFiles()
	if err != nil {
		return err
	}
	if err := r.mountSystem(); err != nil {
		return err
	}
	if err := r.mountVolumes(); err != nil {
		return err
	}
	if err := r.makeFolder(dir); err != nil {
		return err
	}
	if r.ReadOnlyRoot {
		for _, target := range mounted {
			if err := setReadOnly(target, false); err != nil {
				return fmt.Errorf("making %s read-only: %w", target, err)
			}
		}
	}
	if err := r.pivot(); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := r.protect(); err != nil {
		return err
	}
	return os.Chdir(dir)
}

// mountFiles mounts the initial files of the container, and returns the mount points.
func (r *root) mountFiles() (mounted []string, err error) {
	if r.Image != "" {
		if err := r.overlay(r.Image, r.Folder); err != nil {
			return nil, fmt.Errorf("mounting the image: %w", err)
		}
		return []string{r.Folder}, nil
	}
	if err := unix.Mount("tmpfs", r.Folder, "tmpfs", 0, "mode=755"); err != nil {
		return nil, fmt.Errorf("mounting the root: %w", err)
	}
	mounted = []string{r.Folder}
	for _, dir := range []string{"tmp", "run", "var/tmp", "root"} {
		if err := r.makeFolder(dir); err != nil {
			return nil, err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		if err := os.Chmod(filepath.Join(r.Folder, dir), 0o777|os.ModeSticky); err != nil {
			return nil, err
		}
	}
	if err := os.Symlink("../run", filepath.Join(r.Folder, "var/run")); err != nil {
		return nil, err
	}
	for _, dir := range hostFolders {
		shared, err := r.shareFolder(dir)
		if err != nil {
			return nil, fmt.Errorf("sharing %s: %w", dir, err)
		}
		mounted = append(mounted, shared...)
	}
	return mounted, nil
}

// shareFolder mounts a folder of this machine, and returns the mount points. Symbolic links, such as /bin, stay links.
// If the kernel does not support an overlay for a folder, it is read-only, and volumes cannot be mounted in it.
func (r *root) shareFolder(dir string) (mounted []string, err error) {
	target := filepath.Join(r.Folder, dir)
	if link, err := os.Readlink(dir); err == nil {
		return nil, os.Symlink(link, target)
	}
	if _, err := os.Stat(dir); err != nil {
		return nil, nil
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, err
	}
	if err := r.overlay(dir, target); err == nil {
		return []string{target}, nil
	}
	return nil, mount{Source: dir, Target: dir, ReadOnly: true}.bind(r.Folder)
}

// overlay mounts a folder on a target. Changes are visible only in the container.
func (r *root) overlay(lower, target string) error {
	upper, work := filepath.Join(r.Changes, "upper", lower), filepath.Join(r.Changes, "work", lower)
	for _, path := range []string{upper, work} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
	}
	layers := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work)
	err := unix.Mount("overlay", target, "overlay", 0, layers)
	if err == nil {
		return nil
	}
	// In a user namespace, the overlay must store its metadata in user attributes.
	return unix.Mount("overlay", target, "overlay", 0, layers+",userxattr")
}

// mountSystem mounts the file systems of the kernel, which are not part of an image.
func (r *root) mountSystem() error {
	for _, dir := range []string{"proc", "dev"} {
		if err := r.makeFolder(dir); err != nil {
			return err
		}
	}
	if err := unix.Mount("proc", filepath.Join(r.Folder, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if r.Privileged {
		return mount{Source: "/dev", Target: "/dev"}.bind(r.Folder)
	}
	return r.mountDevices()
}

func (r *root) mountDevices() error {
	dev := filepath.Join(r.Folder, "dev")
	if err := unix.Mount("tmpfs", dev, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mounting /dev: %w", err)
	}
	for _, name := range devices {
		if err := (mount{Source: "/dev/" + name, Target: "/dev/" + name}).bind(r.Folder); err != nil {
			return fmt.Errorf("mounting /dev/%s: %w", name, err)
		}
	}
	for name, target := range deviceLinks {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	for _, m := range []struct{ folder, kind, options string }{
		{"pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"}, {"shm", "tmpfs", "mode=1777"},
	} {
		target := filepath.Join(dev, m.folder)
		if err := os.Mkdir(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, target, m.kind, unix.MS_NOSUID|unix.MS_NOEXEC, m.options); err != nil {
			return fmt.Errorf("mounting /dev/%s: %w", m.folder, err)
		}
	}
	return nil
}

// mountVolumes mounts outer folders before the folders in them.
func (r *root) mountVolumes() error {
	slices.SortStableFunc(r.Mounts, func(a, b mount) int {
		return strings.Count(filepath.Clean(a.Target), "/") - strings.Count(filepath.Clean(b.Target), "/")
	})
	for _, m := range r.Mounts {
		if err := m.bind(r.Folder); err != nil {
			return fmt.Errorf("mounting %s: %w", m.Target, err)
		}
	}
	return nil
}

// makeFolder creates a folder that the image may lack.
func (r *root) makeFolder(dir string) error {
	target, err := securejoin.SecureJoin(r.Folder, dir)
	if err != nil {
		return err
	}
	return os.MkdirAll(target, 0o755)
}

// pivot detaches the files of this machine, so that no privilege of the container gives access to them.
func (r *root) pivot() error {
	if err := os.Chdir(r.Folder); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	// The old root is mounted on top of the new one.
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Chdir("/")
}

// protect hides files of the kernel, or makes them read-only. Some of the files do not exist in every kernel.
func (r *root) protect() error {
	for _, path := range r.ReadOnly {
		err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, "")
		if err == nil {
			err = setReadOnly(path, true)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("making %s read-only: %w", path, err)
		}
	}
	for _, path := range r.MaskedPaths {
		err := unix.Mount("/dev/null", path, "", unix.MS_BIND, "")
		if errors.Is(err, unix.ENOTDIR) {
			err = unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY, "")
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("hiding %s: %w", path, err)
		}
	}
	return nil
}

// bind mounts into a root. Symbolic links in the root cannot lead out of it.
func (m mount) bind(root string) error {
	info, err := os.Stat(m.Source)
	if err != nil {
		return err
	}
	target, err := securejoin.SecureJoin(root, m.Target)
	if err != nil {
		return err
	}
	if err := makeMountPoint(target, info.IsDir()); err != nil {
		return err
	}
	// A user namespace may bind inherited mounts only together with the mounts below them.
	if err := unix.Mount(m.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	if !m.ReadOnly {
		return nil
	}
	return setReadOnly(target, true)
}

func setReadOnly(target string, recursive bool) error {
	flags := uint(0)
	if recursive {
		flags = unix.AT_RECURSIVE
	}
	return unix.MountSetattr(unix.AT_FDCWD, target, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
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
	return os.WriteFile(path, nil, 0o644)
}
