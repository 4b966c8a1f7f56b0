package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pushCommand matches the printed commands that push the image and print its digest in the registry. A digest follows
// the command as a comment.
var pushCommand = regexp.MustCompile(`(?m)^  (skopeo .*?)(?: +# sha256:(\w+))?$`)

// TestPush runs the printed commands that push the image of a release, with a registry on a loopback address. It checks
// that the registry has the image that the manifests name, with the digest that was printed.
func TestPush(t *testing.T) {
	skopeo, registryProgram := tool(t, "skopeo"), tool(t, "docker-registry")
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	registry := startRegistry(t, registryProgram)
	out, said := filepath.Join(t.TempDir(), "dist"), strings.Builder{}
	if err := run(t.Context(), []string{"everything", "-root", "..", "-out", out, "-version", testVersion, "-image",
		registry + "/team/k8singress", "-platforms", here.String(), "-binary", here.String() + "=" + path},
		&said); err != nil {
		t.Fatal(err)
	}
	commands := pushCommand.FindAllStringSubmatch(said.String(), -1)
	if len(commands) != 2 || commands[1][2] == "" {
		t.Fatalf("the commands are %q", commands)
	}
	for _, command := range commands {
		printed := output(t, "sh", "-ec", command[1])
		if !strings.HasPrefix(printed, command[2]) {
			t.Errorf("%s prints %s, want %s", command[1], printed, command[2])
		}
	}
	manifest, err := os.ReadFile(filepath.Join(out, "deploy", "cluster", "k8singress.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`image: (\S+):\S+(@sha256:\w+)\n`).FindSubmatch(manifest)
	if image == nil {
		t.Fatal("the manifest names no image by its digest")
	}
	config := output(t, skopeo, "inspect", "--config", fmt.Sprintf("docker://%s%s", image[1], image[2]))
	if !strings.Contains(config, `"org.opencontainers.image.version": "`+testVersion+`"`) {
		t.Errorf("the registry has the image %s", config)
	}
}

// startRegistry starts a registry on a loopback address, and returns this address. Skopeo uses it without TLS.
func startRegistry(t *testing.T, program string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address, folder := listener.Addr().String(), t.TempDir()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(folder, ".config", "containers")
	if err := os.MkdirAll(settings, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(folder, "config.yml"): fmt.Sprintf("version: 0.1\nlog: {level: error}\n"+
			"storage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %q}\n", filepath.Join(folder, "images"), address),
		filepath.Join(settings, "registries.conf"): fmt.Sprintf("[[registry]]\nlocation = %q\ninsecure = true\n",
			address),
		filepath.Join(settings, "policy.json"): `{"default": [{"type": "insecureAcceptAnything"}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", folder)
	t.Setenv("CONTAINERS_REGISTRIES_CONF", filepath.Join(settings, "registries.conf"))
	command, printed := exec.CommandContext(t.Context(), program, "serve", filepath.Join(folder, "config.yml")), &log{}
	command.Stderr = printed
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Wait() }) // The end of the context has killed it.
	for begin := time.Now(); ; <-time.After(20 * time.Millisecond) {
		answer, err := http.Get("http://" + address + "/v2/")
		if err == nil {
			_ = answer.Body.Close()
			return address
		}
		if time.Since(begin) > patience {
			t.Fatalf("the registry does not answer: %v\n%s", err, printed)
		}
	}
}
