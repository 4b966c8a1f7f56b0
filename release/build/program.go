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

// Platforms are the platforms for which a release is built by default.
var Platforms = []v1.Platform{
	{OS: "linux", Architecture: "amd64"},
	{OS: "linux", Architecture: "arm64"},
	{OS: "linux", Architecture: "arm", Variant: "v7"},
}

// versionVariable is the linker symbol of the variable that holds the version, which `caddy k8singress run --version`
// prints.
const versionVariable = "github.com/k8singress/k8singress/k8singress.version"

// Command returns the go command that compiles the binary to the file out. It must be run with the environment
// variables that Environment returns. The binary is statically linked and contains no paths of the build machine, so
// the same source results in the same bytes on every machine.
func (s Source) Command(out string) []string {
	return []string{
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X " + versionVariable + "=" + s.Version,
		"-o", out, "./cmd/caddy",
	}
}

// Environment returns the environment variables that select the target platform. It also sets every other variable that
// affects the binary, so that settings of the build machine have no effect.
func Environment(p v1.Platform) []string {
	return []string{
		"CGO_ENABLED=0", "GOOS=" + p.OS, "GOARCH=" + p.Architecture, "GOARM=" + strings.TrimPrefix(p.Variant, "v"),
		"GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off", "GOFLAGS=", "GOWORK=off",
	}
}

// Program compiles the binary for a platform, and returns its path. The binary is stored in a subfolder of cache. Go
// does not compile it again if it is up to date.
func (s Source) Program(ctx context.Context, cache string, p v1.Platform, log io.Writer) (string, error) {
	// The path must be absolute, because Go runs in the root of the repository.
	out, err := filepath.Abs(filepath.Join(cache, Name(p), "caddy"))
	if err != nil {
		return "", fmt.Errorf("finding the folder for the binary: %w", err)
	}
	fmt.Fprintf(log, "Building %s for %s; the first build takes some minutes.\n", s.Version, p)
	arguments := s.Command(out)
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Dir, command.Env = s.Root, append(os.Environ(), Environment(p)...)
	command.Stdout, command.Stderr = log, log
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("building the binary for %s: %w", p, err)
	}
	return out, nil
}

// Name returns the name of a platform for use in file names, such as linux-arm-v7.
func Name(p v1.Platform) string { return strings.ReplaceAll(p.String(), "/", "-") }
