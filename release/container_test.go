package main

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// patience is the time within which a program must start, even on a busy machine.
const patience = 60 * time.Second

// extract writes the files of an image to root, with their owners and capabilities.
func extract(t *testing.T, image v1.Image, root string) {
	t.Helper()
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers, error %v", len(layers), err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = extractFile(filepath.Join(root, h.Name), h, archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func extractFile(path string, h *tar.Header, content io.Reader) error {
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		err = os.Mkdir(path, 0o755)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, path)
	default:
		var data []byte
		if data, err = io.ReadAll(content); err == nil {
			err = os.WriteFile(path, data, 0o644)
		}
	}
	if err != nil {
		return err
	}
	mode := h.FileInfo().Mode()
	if err := errors.Join(os.Chown(path, h.Uid, h.Gid), os.Chmod(path, mode)); err != nil {
		return err
	}
	if value, ok := h.PAXRecords["SCHILY.xattr.security.capability"]; ok {
		return unix.Setxattr(path, "security.capability", []byte(value), 0)
	}
	return nil
}

// asPod returns a container with the privileges that Kubernetes gives a container that has allowPrivilegeEscalation:
// false and capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}.
func asPod(root string, command ...string) container {
	only := []int{unix.CAP_NET_BIND_SERVICE}
	return container{Root: root, Bounding: only, Permitted: only, NoNewPrivileges: true, Command: command}
}

// TestPrograms checks that each path of the binary in the image can be run.
func TestPrograms(t *testing.T) {
	root := unpacked(t)
	for _, c := range []struct {
		command []string
		says    string
	}{
		{[]string{"/usr/bin/caddy", "version"}, "v2."},
		{[]string{"/nginx-ingress-controller", "--version"}, "k8singress " + testVersion + ", with Caddy v2."},
		{[]string{"/usr/bin/caddy", "/nginx-ingress-controller", "--version"},
			"k8singress " + testVersion + ", with Caddy v2."},
		{[]string{"/wait-shutdown"}, ""},
	} {
		printed, err := asPod(root, c.command...).command(t).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(printed), c.says) {
			t.Errorf("%v: error %v: %s", c.command, err, printed)
		}
	}
}

// TestPort80 checks which privileges allow the binary to listen on port 80 as a user other than root. docs/build.md
// documents the result.
func TestPort80(t *testing.T) {
	root, bind := unpacked(t), []int{unix.CAP_NET_BIND_SERVICE}
	const bound = ""
	for name, c := range map[string]struct {
		container
		// fault is the error that the container ends with. It is empty if the container listens on port 80.
		fault string
	}{
		"as the pods of deploy":        {asPod(root), bound},
		"privilege escalation allowed": {container{Bounding: bind, Permitted: bind}, bound},
		"as Docker does for users":     {container{Bounding: bind}, bound},
		"Docker, with no-new-privileges": {container{Bounding: bind, NoNewPrivileges: true},
			"listen tcp :80: bind: permission denied"},
		"all dropped": {container{NoNewPrivileges: true},
			"starting /usr/bin/caddy: operation not permitted"},
		"all dropped, privilege escalation allowed": {container{}, "starting /usr/bin/caddy: operation not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Root, c.Command = root, []string{"/usr/bin/caddy", "run", "--config", "/etc/caddy/Caddyfile"}
			if got := serve(t, c.container, checkCapability); !strings.Contains(got, c.fault) ||
				(c.fault == bound) != (got == bound) {
				t.Errorf("it should end with %q, and ends with %q", c.fault, got)
			}
		})
	}
}

// TestGet checks that `kubectl exec` can query the admin API. Its socket can only be reached from inside the container,
// and the command finds it without an option.
func TestGet(t *testing.T) {
	serving := asPod(unpacked(t), "/usr/bin/caddy", "run", "--config", "/etc/caddy/Caddyfile")
	ended := serve(t, serving, func(t *testing.T, container *exec.Cmd) {
		inside := []string{"--target", strconv.Itoa(container.Process.Pid), "--mount", "--net", "--root", "--wd",
			"--setuid=101", "--setgid=101"}
		said := output(t, "nsenter", append(inside, "/usr/bin/caddy", "k8singress", "get", "/config/apps/http")...)
		if !strings.Contains(said, `":80"`) {
			t.Errorf("it says %s", said)
		}
	})
	if ended != "" {
		t.Errorf("it ended: %s", ended)
	}
}

// serve starts a container. If the container ends by itself, serve returns what it has printed. Once the container
// responds on port 80 in its network, serve calls check, kills the container and returns an empty string.
func serve(t *testing.T, c container, check func(*testing.T, *exec.Cmd)) string {
	t.Helper()
	command, printed := c.command(t), &log{}
	command.Stdout, command.Stderr = printed, printed
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // The output shows the error, and the process may be killed below.
		close(ended)
	}()
	for begin := time.Now(); time.Since(begin) < patience; {
		select {
		case <-ended:
			return printed.String()
		case <-time.After(50 * time.Millisecond):
		}
		if answer, err := ask(command); err == nil {
			if answer != "from port 80" {
				t.Errorf("port 80 answers %q", answer)
			}
			check(t, command)
			if err := command.Process.Kill(); err != nil {
				t.Error(err)
			}
			<-ended
			return ""
		}
	}
	t.Fatalf("it neither answers nor ends: %s", printed)
	return ""
}

// log collects the output of a program. It is safe for concurrent use.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// checkCapability checks that the process has only the capability CAP_NET_BIND_SERVICE.
func checkCapability(t *testing.T, command *exec.Cmd) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Uid:\t101\t101\t101\t101\n", "CapEff:\t0000000000000400\n",
		"CapPrm:\t0000000000000400\n"} {
		if !strings.Contains(string(status), want) {
			t.Errorf("its status has no %q: %s", want, status)
		}
	}
}

// ask sends a request from inside the network namespace of a process. The goroutine locks its thread and never unlocks
// it, so the thread ends with the goroutine and is not reused in the other namespace.
func ask(command *exec.Cmd) (answer string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		answer, err = askFromInside(command.Process.Pid)
	}()
	<-done
	return answer, err
}

func askFromInside(pid int) (string, error) {
	network, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return "", err
	}
	defer network.Close()
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return "", fmt.Errorf("entering the network: %w", err)
	}
	connection, err := dial80()
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "GET / HTTP/1.0\r\nHost: a\r\n\r\n"); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// dial80 creates its socket on the calling thread, and so in the network namespace of that thread.
func dial80() (net.Conn, error) {
	dialer := net.Dialer{Timeout: patience}
	return dialer.DialContext(context.Background(), "tcp4", "127.0.0.1:80")
}
