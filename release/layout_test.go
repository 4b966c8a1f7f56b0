package main

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/k8singress/k8singress/release/build"
)

// testVersion does not change with the commit, so the binary of the tests is linked again only after its source
// changes.
const (
	testVersion = "v0.0.0-test"
	testTag     = "0.0.0-test"
)

// largest is the maximum compressed size of the image, in bytes.
const largest = 45_000_000

// here is the platform of this machine. Tests build for no other platform.
var here = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// program compiles the binary like a release and returns its path.
var program = sync.OnceValues(func() (string, error) {
	source := build.Source{Root: "..", Version: testVersion}
	return source.Program(context.Background(), filepath.Join("..", ".cache", "release", "test"), here, os.Stderr)
})

// builtIn is the temporary folder that built has created. TestMain removes it.
var builtIn string

// built runs the release command once for all tests, and returns the folder with the result.
var built = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "k8singress-release")
	if err != nil {
		return "", err
	}
	builtIn = folder
	return folder, makeImage(filepath.Join(folder, "dist"))
})

func makeImage(out string) error {
	path, err := program()
	if err != nil {
		return err
	}
	if err := os.Setenv("SOURCE_DATE_EPOCH", "1700000000"); err != nil {
		return err
	}
	platform := here.String()
	arguments := []string{"everything", "-root", "..", "-out", out, "-version", testVersion, "-platforms", platform,
		"-binary", platform + "=" + path}
	return run(context.Background(), arguments, os.Stderr)
}

// imageFolder returns the folder with the layout and the archives.
func imageFolder(t *testing.T) string {
	t.Helper()
	folder, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// sums returns the hashes of all files below a folder, by path.
func sums(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, folder)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTwiceTheSame checks that packing the same binary twice results in the same bytes, and so in the same digest.
func TestTwiceTheSame(t *testing.T) {
	first := filepath.Join(imageFolder(t), "dist")
	second := filepath.Join(t.TempDir(), "dist")
	if err := makeImage(second); err != nil {
		t.Fatal(err)
	}
	if a, b := sums(t, first), sums(t, second); !maps.Equal(a, b) {
		t.Errorf("the first build made %v, the second %v", a, b)
	}
}

// onlyImage reads a layout that contains one image, directly or in an index.
func onlyImage(t *testing.T, folder string) v1.Image {
	t.Helper()
	index, err := layout.ImageIndexFromPath(folder)
	for err == nil {
		manifest, wrong := index.IndexManifest()
		if wrong != nil || len(manifest.Manifests) != 1 {
			t.Fatalf("%s does not have one image: %v, error %v", folder, manifest, wrong)
		}
		only := manifest.Manifests[0]
		if !only.MediaType.IsIndex() {
			image, wrong := index.Image(only.Digest)
			if wrong != nil {
				t.Fatal(wrong)
			}
			return image
		}
		index, err = index.ImageIndex(only.Digest)
	}
	t.Fatal(err)
	return nil
}

// tree returns the files of an image in the format of testdata/tree.txt, one per line.
func tree(t *testing.T, image v1.Image) string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, l := range layers {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		for archive := tar.NewReader(content); ; {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line(h))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func line(h *tar.Header) string {
	kind := map[byte]int64{tar.TypeDir: 0o40000, tar.TypeReg: 0o100000, tar.TypeSymlink: 0o120000}[h.Typeflag]
	text := fmt.Sprintf("%s mode=%o owner=%d:%d", h.Name, kind|h.Mode, h.Uid, h.Gid)
	if h.Linkname != "" {
		text += " -> " + h.Linkname
	}
	if capability, ok := h.PAXRecords["SCHILY.xattr.security.capability"]; ok {
		text += fmt.Sprintf(" capability=%x", capability)
	}
	return text + "\n"
}

func TestImage(t *testing.T) {
	image := onlyImage(t, filepath.Join(imageFolder(t), "dist", "image"))
	want, err := os.ReadFile("testdata/tree.txt")
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, image); got != string(want) {
		t.Errorf("the image has\n%s", got)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	const version = "org.opencontainers.image.version"
	if c := config.Config; c.User != "101" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/caddy"}) ||
		c.Labels[version] != testVersion {
		t.Errorf("the configuration is %+v", c)
	}
	if at := config.Created.Time; !at.Equal(time.Unix(1700000000, 0)) {
		t.Errorf("it was created at %v", at)
	}
}

// TestSize checks the compressed size of the image, which each node has to pull.
func TestSize(t *testing.T) {
	manifest, err := onlyImage(t, filepath.Join(imageFolder(t), "dist", "image")).Manifest()
	if err != nil {
		t.Fatal(err)
	}
	size := manifest.Config.Size
	for _, l := range manifest.Layers {
		size += l.Size
	}
	t.Logf("the image has %.1f MB compressed", float64(size)/1e6)
	if size > largest {
		t.Errorf("the image has %d bytes compressed, and may have %d", size, largest)
	}
}

// TestProgramNeedsNoSystem checks that the binary is linked without cgo and contains root certificates, since the image
// has neither a C library nor root certificates.
func TestProgramNeedsNoSystem(t *testing.T) {
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
		t.Errorf("it was built with %v", settings)
	}
	const roots = "golang.org/x/crypto/x509roots/fallback"
	if !slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == roots }) {
		t.Errorf("%s is not in the program", roots)
	}
}

// tool returns the path of a program of a Debian package. If the program is missing, the test is skipped, or fails if
// the environment variable K8SINGRESS_TESTS is "all", as in CI.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	leave := t.Skipf
	if os.Getenv("K8SINGRESS_TESTS") == "all" {
		leave = t.Fatalf
	}
	leave("LEFT OUT: there is no %s; install Debian's package of that name", name)
	return ""
}

// output runs a program and returns its standard output.
func output(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	printed, err := command.Output()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatalf("%s %v: %v", name, arguments, err)
	}
	return string(printed)
}
