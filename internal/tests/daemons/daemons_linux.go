package daemons

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

const (
	// patience is the maximum time for a server to stop and for a client program to finish.
	patience = fixture.Patience
	// everything is a value of the environment variable K8SINGRESS_TESTS. With this value, a test fails if a program is
	// missing, instead of being skipped.
	everything = "all"
)

// Program returns the path of a program from a Debian package. It searches the given folders, which may be glob
// patterns, and PATH. If the program is missing, the test is skipped, or fails if the environment variable
// K8SINGRESS_TESTS is "all", as in CI.
func Program(t testing.TB, name, debianPackage string, folders ...string) string {
	t.Helper()
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, name))
		if err == nil && len(found) > 0 {
			return found[len(found)-1]
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	leave := t.Skipf
	if os.Getenv("K8SINGRESS_TESTS") == everything {
		leave = t.Fatalf
	}
	leave("LEFT OUT: there is no %s; install Debian's package %s", name, debianPackage)
	return ""
}

// daemon is a server process for a test. It may run under a separate account.
type daemon struct {
	testing.TB
	folder string
	// account is the account under which the server runs. Nil means the account that runs the test.
	account *syscall.Credential
}

// newDaemon creates a daemon with a folder for its files. The folder is in a parent folder that every account may
// enter, unlike the temporary folders of the testing package.
func newDaemon(t testing.TB) *daemon {
	t.Helper()
	folder, err := os.MkdirTemp("", "k8singress-daemon")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	d := &daemon{TB: t, folder: folder}
	if os.Getuid() == 0 {
		d.account = powerless(t)
	}
	d.own(folder)
	return d
}

// powerless returns an unprivileged account for servers that refuse to run as root, such as PostgreSQL.
func powerless(t testing.TB) *syscall.Credential {
	t.Helper()
	found, err := user.Lookup("postgres")
	if err != nil {
		found, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, errUser := strconv.ParseUint(found.Uid, 10, 32)
	gid, errGroup := strconv.ParseUint(found.Gid, 10, 32)
	if err := errors.Join(errUser, errGroup); err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (d *daemon) own(path string) {
	d.Helper()
	if d.account == nil {
		return
	}
	if err := os.Chown(path, int(d.account.Uid), int(d.account.Gid)); err != nil {
		d.Fatal(err)
	}
}

// write creates a file that only the server's account can read.
func (d *daemon) write(name, content string) (path string) {
	d.Helper()
	path = filepath.Join(d.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		d.Fatal(err)
	}
	d.own(path)
	return path
}

func (d *daemon) command(path string, arguments ...string) *exec.Cmd {
	command := exec.Command(path, arguments...)
	command.Dir = d.folder
	command.Env = append(os.Environ(), "HOME="+d.folder, "LC_ALL=C")
	command.SysProcAttr = &syscall.SysProcAttr{Credential: d.account}
	return command
}

// start runs the server until the test ends, and then sends the signal end to it. This signal must stop the server and
// its child processes.
func (d *daemon) start(end syscall.Signal, path string, arguments ...string) {
	d.Helper()
	log, err := os.Create(filepath.Join(d.TempDir(), "log"))
	if err != nil {
		d.Fatal(err)
	}
	command := d.command(path, arguments...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr.Pdeathsig = end
	if err := command.Start(); err != nil {
		d.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // The error only reports the signal.
		close(ended)
	}()
	d.Cleanup(func() {
		d.stop(command, end, ended)
		if text, err := os.ReadFile(log.Name()); d.Failed() {
			d.Logf("the log of %s, error %v:\n%s", path, err, text)
		}
		log.Close()
	})
}

func (d *daemon) stop(command *exec.Cmd, end syscall.Signal, ended <-chan struct{}) {
	d.Helper()
	// Ignore the error: Signal returns an error only if the server has already ended. The next lines wait for the end
	// of the server.
	_ = command.Process.Signal(end)
	select {
	case <-ended:
	case <-time.After(patience):
		d.Errorf("%s does not end", command.Path)
		_ = command.Process.Kill()
		<-ended
	}
}

// run runs a client program with the given input and returns its output.
func run(ctx context.Context, input string, environment []string, path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdin = strings.NewReader(input)
	output, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = errors.New(exit.String() + ": " + string(exit.Stderr))
	}
	return strings.TrimSpace(string(output)), err
}

// split splits an address into host and port. It fails the test if the address is invalid.
func split(t testing.TB, address string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
