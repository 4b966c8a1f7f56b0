package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// static is Caddy compiled as for a release, so that the packages are those that the tests of release/ have compiled.
func static(path *string, root string) target {
	return target{
		path: path, name: "caddy", module: root, pkg: "./cmd/caddy",
		flags: []string{"-trimpath", "-ldflags", "-s -w"}, env: []string{"CGO_ENABLED=0"},
	}
}

// buildImage has release/ make the container image of this machine's platform, unless it is there with the same
// program, and returns its folder.
func buildImage(ctx context.Context, root string, log io.Writer) (string, error) {
	if path := os.Getenv(imageVariable); path != "" {
		return path, nil
	}
	cache := filepath.Join(root, ".cache", "test")
	var caddy, release string
	for _, t := range []target{static(&caddy, root),
		{path: &release, name: "release", module: filepath.Join(root, "release"), pkg: "."}} {
		if err := t.build(ctx, cache, log); err != nil {
			return "", err
		}
	}
	sum, err := sumOf(caddy, release)
	if err != nil {
		return "", err
	}
	// The layout is in a folder with this name of what is made.
	out, stamp := filepath.Join(cache, "image"), filepath.Join(cache, "image", "made-of")
	if former, _ := os.ReadFile(stamp); string(former) != sum {
		// What a release that fails leaves behind is of no program.
		if err := os.RemoveAll(stamp); err != nil {
			return "", err
		}
		platform := "linux/" + runtime.GOARCH
		command := exec.CommandContext(ctx, release, "image", "-root", root, "-out", out, "-version", "v0.0.0-test",
			"-platforms", platform, "-binary", platform+"="+caddy)
		command.Stdout, command.Stderr = log, log
		if err := command.Run(); err != nil {
			return "", fmt.Errorf("making the container image: %w", err)
		}
		if err := os.WriteFile(stamp, []byte(sum), 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(out, "image"), nil
}

// sumOf identifies the content of files.
func sumOf(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(sum, file)
		_ = file.Close()
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
