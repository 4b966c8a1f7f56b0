package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Platforms are those of a release.
var Platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
	{OS: "linux", Architecture: "arm", Variant: "v7"},
}

// versionVariable is the one that `caddy k8singress run --version` prints.
const versionVariable = "github.com/k8singress/k8singress/k8singress.version"

// Command is how Go compiles the program for every platform; the environment that goes with it is Environment. Neither
// cgo nor a path of this machine is in the result, so that it needs no file of the system, and another machine makes
// the same bytes.
func (s Source) Command(out string) []string {
	return []string{
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X " + versionVariable + "=" + s.Version,
		"-o", out, "./cmd/caddy",
	}
}

// Environment says for which platform Go compiles, and leaves nothing of it to the machine's settings.
func Environment(p v1.Platform) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Architecture, "GOARM=" + strings.TrimPrefix(p.Variant, "v"),
		"GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=", "GOWORK=off",
	}
}

// Program compiles the program for a platform into a folder of its own below cache, and returns its path. What is up to
// date stays.
func (s Source) Program(ctx context.Context, cache string, p v1.Platform, log io.Writer) (string, error) {
	// Go runs in another folder than this process.
	out, err := filepath.Abs(filepath.Join(cache, Name(p), "caddy"))
	if err != nil {
		return "", fmt.Errorf("finding the folder for the program: %w", err)
	}
	fmt.Fprintf(log, "Building %s for %s; the first time takes some minutes.\n", s.Version, p)
	arguments := s.Command(out)
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir, command.Env = s.Root, append(os.Environ(), Environment(p)...)
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("building the program for %s: %w", p, err)
	}
	return out, nil
}

// Name is a platform in the name of a file: linux-arm-v7.
func Name(p v1.Platform) string { return strings.ReplaceAll(p.String(), "/", "-") }
