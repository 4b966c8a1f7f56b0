package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// registryAddress is the address of the registry. Only the pods and tests of one cluster can reach it.
const registryAddress = "127.0.0.1:5000"

// startRegistry starts a registry on a loopback address. It skips the test if a program is missing.
func (c *cluster) startRegistry() {
	c.Helper()
	for _, name := range []string{"docker-registry", "skopeo"} {
		if _, err := exec.LookPath(name); err != nil {
			c.Skipf("LEFT OUT: an image in a registry: there is no %s; install Debian's package of that name", name)
		}
	}
	folder := c.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\n"+
		"http: {addr: %q}\n", filepath.Join(folder, "images"), registryAddress)
	file := filepath.Join(folder, "config.yml")
	c.must(os.WriteFile(file, []byte(config), 0o600))
	command := exec.CommandContext(c.Context(), "docker-registry", "serve", file)
	command.Stderr = os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.must(command.Start())
	c.Cleanup(func() { _ = command.Wait() }) // The context has ended it.
	c.awaitFor(time.Minute, "the registry", func() error {
		answer, err := http.Get("http://" + registryAddress + "/v2/")
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	})
}

// push follows the page that pushes the image to the registry, with the image of this test.
func (r *installer) push() {
	r.Helper()
	settings := filepath.Join(".config", "containers")
	for _, folder := range []string{settings, "dist"} {
		r.must(os.MkdirAll(filepath.Join(r.folder, folder), 0o755))
	}
	for name, text := range map[string]string{
		"registries.conf": "[[registry]]\nlocation = \"" + registryAddress + "\"\ninsecure = true\n",
		"policy.json":     `{"default": [{"type": "insecureAcceptAnything"}]}`,
	} {
		r.must(os.WriteFile(filepath.Join(r.folder, settings, name), []byte(text), 0o600))
	}
	r.must(os.Symlink(r.inside.Programs.Image, filepath.Join(r.folder, "dist", "image")))
	made, pushed, ok := strings.Cut(r.scripts("install.md", "## Build an image", 1)[0], "\n")
	if !ok || made != "make image" {
		r.Fatalf("the page makes the image with %q", made)
	}
	// TestMain has made the image for this machine alone.
	r.run("export HOME=$PWD CONTAINERS_REGISTRIES_CONF=$PWD/.config/containers/registries.conf\n" + pushed)
}
