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

// static returns the target for Caddy with the build flags of a release, so that packages compiled by the tests of
// release/ are reused.
func static(path *string, root string) target {
	return target{
		path: path, name: "caddy", module: root, pkg: "./cmd/caddy",
		flags: []string{"-trimpath", "-ldflags", "-s -w"}, env: []string{"CGO_ENABLED=0"},
	}
}

// buildImage makes release/ build the container image for this machine's platform, and returns its folder. It does
// nothing if the image already contains the same binary.
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
	// The command writes the layout to the subfolder image of its output folder.
	out, stamp := filepath.Join(cache, "image"), filepath.Join(cache, "image", "made-of")
	if former, _ := os.ReadFile(stamp); string(former) != sum {
		// If the command fails, no stamp must remain, because the folder may be incomplete.
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

// sumOf returns a hash over the contents of files.
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
