package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"
)

// TestSkopeo checks that a registry client can read the layout and copy the image from it.
func TestSkopeo(t *testing.T) {
	skopeo, layout := tool(t, "skopeo"), filepath.Join(imageFolder(t), "dist", "image")
	var said struct {
		Architecture, Os string
		Labels           map[string]string
	}
	if err := json.Unmarshal([]byte(output(t, skopeo, "inspect", "oci:"+layout)), &said); err != nil {
		t.Fatal(err)
	}
	if said.Architecture != here.Architecture || said.Os != "linux" ||
		said.Labels["org.opencontainers.image.version"] != testVersion {
		t.Errorf("skopeo says %+v", said)
	}
	copied := filepath.Join(t.TempDir(), "copied")
	output(t, skopeo, "copy", "--insecure-policy", "--all", "oci:"+layout+":"+testTag, "oci:"+copied+":"+testTag)
	if a, b := digest(t, layout), digest(t, copied); a != b {
		t.Errorf("skopeo copied %s as %s", a, b)
	}
}

func digest(t *testing.T, layout string) string {
	t.Helper()
	d, err := onlyImage(t, layout).Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d.String()
}

// capability is the kernel's representation of cap_net_bind_service+ep.
const capability = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// TestUmoci checks that the layout can be unpacked. If the test runs as root, it also checks owners and the capability.
func TestUmoci(t *testing.T) {
	umoci, bundle := tool(t, "umoci"), filepath.Join(t.TempDir(), "bundle")
	arguments := []string{"unpack", "--image", filepath.Join(imageFolder(t), "dist", "image") + ":" + testTag, bundle}
	if os.Getuid() != 0 {
		arguments = append(arguments[:1], append([]string{"--rootless"}, arguments[1:]...)...)
	}
	output(t, umoci, arguments...)
	target, err := os.Readlink(filepath.Join(bundle, "rootfs", "nginx-ingress-controller"))
	if err != nil || target != "/usr/bin/caddy" {
		t.Errorf("the link leads to %q, error %v", target, err)
	}
	if os.Getuid() == 0 {
		value := make([]byte, 64)
		n, err := unix.Getxattr(filepath.Join(bundle, "rootfs", "usr", "bin", "caddy"), "security.capability", value)
		if err != nil || string(value[:n]) != capability {
			t.Errorf("the capability of the program is %x, error %v", value[:max(n, 0)], err)
		}
	}
}

// TestDockerfile checks that the Dockerfile builds an image with the same files and the same configuration as the
// command. Buildah uses its own storage and needs no daemon.
func TestDockerfile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("LEFT OUT: Buildah sets owners and capabilities, which only root may do")
	}
	buildah, folder := tool(t, "buildah"), t.TempDir()
	store := []string{"--storage-driver", "vfs", "--root", filepath.Join(folder, "store"), "--runroot",
		filepath.Join(folder, "run")}
	made := imageFolder(t)
	output(t, buildah, append(store, "build", "--isolation", "chroot", "--platform", here.String(), "--ignorefile",
		"../.dockerignore",
		"--file", "../Dockerfile", "--tag", "k8singress", made)...)
	out := filepath.Join(folder, "out")
	output(t, buildah, append(store, "push", "k8singress", "oci:"+out)...)
	theirs, ours := onlyImage(t, out), onlyImage(t, filepath.Join(made, "dist", "image"))
	if a, b := tree(t, theirs), tree(t, ours); a != b {
		t.Errorf("the Dockerfile makes\n%s\nand the command makes\n%s", a, b)
	}
	if a, b := ran(t, theirs), ran(t, ours); a != b {
		t.Errorf("a container of the Dockerfile's image is\n%s\nand one of the command's is\n%s", a, b)
	}
}

// ran returns the configuration of containers of the image as JSON, without labels.
func ran(t *testing.T, image v1.Image) string {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c := file.Config
	c.Labels = nil
	slices.Sort(c.Env)
	text, err := json.MarshalIndent(c, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
