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
)

const (
	// patience is how long a server may take to end, and a client to do what it is asked.
	patience = 30 * time.Second
	// everything is the value of K8SINGRESS_TESTS with which a program that is missing is a fault.
	everything = "all"
)

// Program returns the path of a program that a Debian package has: from one of the folders, which may be patterns, or where
// the shell finds it. Where it is missing, the test is left out, or fails if the environment variable K8SINGRESS_TESTS is
// "all", as in CI.
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

// daemon is a server under an account of its own.
type daemon struct {
	testing.TB
	folder string
	// account is nil for that of the test.
	account *syscall.Credential
}

// newDaemon makes the folder, in one that everybody may go through: those of the testing package are closed.
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

// powerless is an account for servers that refuse to be root, as PostgreSQL does.
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

// write makes a file that only the account can read.
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

// start runs the server until the end of the test. The signal ends it with all processes of its own.
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
		_ = command.Wait() // It is stopped by a signal.
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
	// An error says that it has ended, which the next lines wait for.
	_ = command.Process.Signal(end)
	select {
	case <-ended:
	case <-time.After(patience):
		d.Errorf("%s does not end", command.Path)
		_ = command.Process.Kill()
		<-ended
	}
}

// run runs a client program with input, and returns what it prints.
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

// split is for addresses that this package made or was given by tests.
func split(t testing.TB, address string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}
