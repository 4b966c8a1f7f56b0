package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
)

// bindPorts is the struct vfs_cap_data for cap_net_bind_service+ep.
const bindPorts = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

var (
	lower = []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "bin/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "bin/tool", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "bin/old", Typeflag: tar.TypeReg, Mode: 0o755},
		{Name: "cache/old", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "cache/listed/old", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "sbin", Typeflag: tar.TypeSymlink, Linkname: "bin"},
		{Name: "tmp", Typeflag: tar.TypeDir, Mode: 0o1777},
	}
	upper = []tar.Header{
		{Name: "bin/tool", Typeflag: tar.TypeReg, Mode: 0o4750, Uid: 101, Gid: 102,
			PAXRecords: map[string]string{capabilityRecord: bindPorts}},
		{Name: "bin/same", Typeflag: tar.TypeLink, Linkname: "bin/tool"},
		{Name: "bin/.wh.old", Typeflag: tar.TypeReg},
		{Name: "cache/new", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "cache/sub/new", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "cache/listed", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "cache/.wh..wh..opq", Typeflag: tar.TypeReg},
	}
)

func TestUnpack(t *testing.T) {
	image, err := Open(layout(t, []string{"pdp11", runtime.GOARCH}, lower, upper))
	if err != nil {
		t.Fatal(err)
	}
	if image.Config.User != "101" {
		t.Errorf("the configuration is %+v", image.Config)
	}
	root, owners := filepath.Join(t.TempDir(), "root"), os.Geteuid() == 0
	if err := image.Unpack(root, owners); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{
		"bin": 0o755 | fs.ModeDir, "bin/tool": 0o750 | fs.ModeSetuid, "sbin": 0o777 | fs.ModeSymlink,
		"tmp":       0o777 | fs.ModeDir | fs.ModeSticky,
		"cache/new": 0o644, "cache/sub/new": 0o644, "cache/listed": 0o755 | fs.ModeDir,
	} {
		if info, err := os.Lstat(filepath.Join(root, path)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v; want the mode %v", path, info, err, want)
		}
	}
	for _, path := range []string{"bin/old", "bin/.wh.old", "cache/old", "cache/listed/old", "cache/.wh..wh..opq"} {
		if _, err := os.Lstat(filepath.Join(root, path)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(root, "sbin/same")); string(text) != "bin/tool" || err != nil {
		t.Errorf("bin/same is %q, %v", text, err)
	}
	if !owners {
		t.Skip("LEFT OUT: owners and capabilities of files, which only root may set")
	}
	checkOwner(t, filepath.Join(root, "bin/tool"))
}

func checkOwner(t *testing.T, path string) {
	t.Helper()
	var status syscall.Stat_t
	if err := syscall.Stat(path, &status); err != nil || status.Uid != 101 || status.Gid != 102 {
		t.Errorf("it belongs to %d:%d, %v", status.Uid, status.Gid, err)
	}
	value := make([]byte, 64)
	n, err := unix.Getxattr(path, capabilities, value)
	if err != nil || string(value[:n]) != bindPorts {
		t.Errorf("its capabilities are %x, %v", value[:max(n, 0)], err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	for name, entries := range map[string][]tar.Header{
		"path escapes": {
			{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "../.."},
			{Name: "out/file", Typeflag: tar.TypeReg, Mode: 0o644},
		},
		"not known here":               {{Name: "pipe", Typeflag: tar.TypeFifo}},
		`removes "", which names no`:   {{Name: "bin/.wh.", Typeflag: tar.TypeReg}},
		`removes ".", which names no`:  {{Name: "bin/.wh..", Typeflag: tar.TypeReg}},
		`removes "..", which names no`: {{Name: "bin/.wh...", Typeflag: tar.TypeReg}},
	} {
		image, err := Open(layout(t, []string{runtime.GOARCH}, entries))
		if err != nil {
			t.Fatal(err)
		}
		if err := image.Unpack(filepath.Join(t.TempDir(), "root"), false); err == nil ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(layout(t, []string{"pdp11"}, lower)); err == nil ||
		!strings.Contains(err.Error(), "it has nothing for linux/"+runtime.GOARCH) {
		t.Errorf("another machine's: %v", err)
	}
	damaged := layout(t, []string{runtime.GOARCH}, lower)
	blobs, err := filepath.Glob(filepath.Join(damaged, "blobs/sha256/*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range blobs {
		if err := os.WriteFile(blob, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(damaged); err == nil || !strings.Contains(err.Error(), "wrong content") {
		t.Errorf("damaged: %v", err)
	}
}

// layout writes an image for each architecture, each in its own index like `make image`.
func layout(t *testing.T, architectures []string, layers ...[]tar.Header) string {
	t.Helper()
	folder := t.TempDir()
	manifest := specs.Manifest{Config: blob(t, folder, encode(t, specs.Image{Config: specs.ImageConfig{User: "101"}}))}
	for _, entries := range layers {
		manifest.Layers = append(manifest.Layers, blob(t, folder, archive(t, entries)))
	}
	var all specs.Index
	for _, architecture := range architectures {
		one := blob(t, folder, encode(t, manifest))
		one.Platform = &specs.Platform{OS: "linux", Architecture: architecture}
		all.Manifests = append(all.Manifests,
			blob(t, folder, encode(t, specs.Index{Manifests: []specs.Descriptor{one}})))
	}
	if err := os.WriteFile(filepath.Join(folder, "index.json"), encode(t, all), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func blob(t *testing.T, folder string, content []byte) specs.Descriptor {
	t.Helper()
	d := digest.FromBytes(content)
	path := filepath.Join(folder, "blobs", "sha256", d.Encoded())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return specs.Descriptor{Digest: d}
}

// archive returns an archive of files whose content is their name.
func archive(t *testing.T, entries []tar.Header) []byte {
	t.Helper()
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	w := tar.NewWriter(z)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := w.Write([]byte(h.Name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, end := range []func() error{w.Close, z.Close} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	return compressed.Bytes()
}
