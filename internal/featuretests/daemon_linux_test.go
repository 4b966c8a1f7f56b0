package featuretests

import (
	"context"
	"errors"
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

// everything is the value of K8SINGRESS_TESTS with which a program that is missing is a fault.
const everything = "all"

// programOf returns the path of a program, from one of the folders if it is there. Without it, the test is left out.
func programOf(t *testing.T, name, debianPackage string, folders ...string) string {
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
	skip := t.Skipf
	if os.Getenv("K8SINGRESS_TESTS") == everything {
		skip = t.Fatalf
	}
	skip("LEFT OUT: there is no %s; install Debian's package %s", name, debianPackage)
	return ""
}

// account is who runs a server: somebody without rights where we are root, because PostgreSQL refuses to be that.
func account(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
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

// daemon is a program that keeps its files in a folder of its own, and runs under an account of its own.
type daemon struct {
	testing.TB
	folder  string
	account *syscall.Credential
}

// newDaemon makes the folder, in one that everybody may go through: those of the testing package are closed.
func newDaemon(t *testing.T) *daemon {
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
	d := &daemon{t, folder, account(t)}
	d.own(folder)
	return d
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

// start runs a server until the end of the test, which ends with the signal, with all processes of its own.
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
		// An error says that it has ended, which the next lines wait for.
		_ = command.Process.Signal(end)
		select {
		case <-ended:
		case <-time.After(deadline):
			d.Error("it does not end")
			_ = command.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(log.Name()); d.Failed() {
			d.Logf("the log of %s, error %v:\n%s", path, err, text)
		}
		log.Close()
	})
}

// client runs a client program with input, and returns what it prints.
func client(t *testing.T, input string, environment []string, path string, arguments ...string) string {
	t.Helper()
	output, err := tryClient(t.Context(), input, environment, path, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v", filepath.Base(path), strings.Join(arguments, " "), err)
	}
	return strings.TrimSpace(output)
}

func tryClient(ctx context.Context, input string, environment []string, path string, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*deadline)
	defer cancel()
	command := exec.CommandContext(ctx, path, arguments...)
	command.Env = append(os.Environ(), environment...)
	command.Stdin = strings.NewReader(input)
	output, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = errors.New(exit.Error() + ": " + string(exit.Stderr))
	}
	return string(output), err
}

// awaitServer waits until a server takes connections, and says what it wants to hear.
func awaitServer(t *testing.T, ask func() error) {
	t.Helper()
	(&ingress{TB: t}).eventually("the server", ask)
}
