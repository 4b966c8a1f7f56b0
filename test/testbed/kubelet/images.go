package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/k8singress/k8singress/test/testbed/oci"
)

// layoutPrefix is the prefix of a rule's value that names the layout of an image instead of a program.
const layoutPrefix = "oci:"

// Image describes what a container runs.
type Image struct {
	// ID identifies the image.
	ID string
	// Root is the folder with the files of the image. It is empty for a program of this machine, which sees the files
	// of this machine.
	Root string
	// Program is the path of such a program.
	Program string
	// Config has the defaults for containers of the image.
	Config specs.ImageConfig
}

// Images maps image names to images by rules. The name of a rule is a repository, or its last path elements: "echo"
// also matches "registry.example/team/echo:v1", unless a longer rule matches. A name with a tag or a digest matches
// only that image, and takes precedence.
//
// Images of a registry on a loopback address, such as 127.0.0.1:5000/k8singress:v1, need no rule: Skopeo pulls them.
type Images struct {
	// folder is the folder into which images are unpacked.
	folder string
	rules  map[string]Image

	// pulling prevents two pulls at the same time. mu protects pulled, the images by their references.
	pulling, mu sync.Mutex
	pulled      map[string]Image
}

// NewImages reads rules of the forms NAME=PROGRAM [ARGUMENT ...] and NAME=oci:LAYOUT. It unpacks the images of layouts
// into folder.
func NewImages(rules []string, folder string) (*Images, error) {
	images := &Images{folder: folder, rules: map[string]Image{}, pulled: map[string]Image{}}
	for _, rule := range rules {
		name, value, _ := strings.Cut(rule, "=")
		image, err := images.read(value)
		if err != nil {
			return nil, fmt.Errorf("image rule %q: %w", rule, err)
		}
		if name == "" {
			return nil, fmt.Errorf("image rule %q is not NAME=PROGRAM or NAME=oci:LAYOUT", rule)
		}
		images.rules[name] = image
	}
	return images, nil
}

func (i *Images) read(value string) (Image, error) {
	if layout, ok := strings.CutPrefix(value, layoutPrefix); ok {
		return i.unpack(layout)
	}
	words := strings.Fields(value)
	if len(words) == 0 {
		return Image{}, fmt.Errorf("there is no program: it is NAME=PROGRAM or NAME=oci:LAYOUT")
	}
	program, err := filepath.Abs(words[0])
	return Image{
		ID: "local://" + program, Program: program,
		Config: specs.ImageConfig{Entrypoint: []string{"/" + filepath.Base(program)}, Cmd: words[1:]},
	}, err
}

// unpack reads an image and unpacks its files, which all its containers share.
func (i *Images) unpack(layout string) (Image, error) {
	image, err := oci.Open(layout)
	if err != nil {
		return Image{}, err
	}
	root := filepath.Join(i.folder, image.Digest.Encoded())
	if _, err := os.Stat(root); err != nil {
		if err := image.Unpack(root, !oneUser()); err != nil {
			return Image{}, err
		}
	}
	return Image{ID: image.Digest.String(), Root: root, Config: image.Config}, nil
}

// Pull pulls an image, if it belongs to a registry on a loopback address and was not pulled before, and returns it.
func (i *Images) Pull(ctx context.Context, reference string) (Image, error) {
	if !onLoopback(reference) {
		return i.Find(reference)
	}
	i.pulling.Lock()
	defer i.pulling.Unlock()
	if image, err := i.Find(reference); err == nil {
		return image, nil
	}
	layout, err := os.MkdirTemp(i.folder, "pulled")
	if err != nil {
		return Image{}, fmt.Errorf("pulling %s: %w", reference, err)
	}
	out, err := exec.CommandContext(ctx, "skopeo", "copy", "--insecure-policy", "--src-tls-verify=false",
		"docker://"+untagged(reference), "oci:"+layout).CombinedOutput()
	if err != nil {
		return Image{}, fmt.Errorf("pulling %s: %w\n%s", reference, err, out)
	}
	image, err := i.unpack(layout)
	if err == nil {
		i.mu.Lock()
		i.pulled[reference] = image
		i.mu.Unlock()
	}
	return image, err
}

// onLoopback reports whether the registry of a reference has a loopback address.
func onLoopback(reference string) bool {
	host, _, _ := strings.Cut(reference, "/")
	name, _, err := net.SplitHostPort(host)
	return err == nil && net.ParseIP(name).IsLoopback()
}

// untagged removes the tag of a reference that also has a digest, because Skopeo accepts only one of them.
func untagged(reference string) string {
	if strings.Contains(reference, "@") {
		return names(reference)[0]
	}
	return reference
}

// Find returns the image for a reference. An image of a registry on a loopback address must have been pulled.
func (i *Images) Find(reference string) (Image, error) {
	if onLoopback(reference) {
		i.mu.Lock()
		defer i.mu.Unlock()
		if image, ok := i.pulled[reference]; ok {
			return image, nil
		}
		return Image{}, fmt.Errorf("the image %q was not pulled", reference)
	}
	for _, name := range names(reference) {
		for more := true; more; _, name, more = strings.Cut(name, "/") {
			if image, ok := i.rules[name]; ok {
				return image, nil
			}
		}
	}
	return Image{}, fmt.Errorf("there is nothing to run for the image %q: name it with --image", reference)
}

// names returns a reference with its digest, with its tag, and without both. A colon before a slash is followed by the
// port of a registry, not by a tag.
func names(reference string) []string {
	tagged, digest, _ := strings.Cut(reference, "@")
	repository := tagged
	if colon := strings.LastIndexByte(tagged, ':'); colon > strings.LastIndexByte(tagged, '/') {
		repository = tagged[:colon]
	}
	return []string{repository + "@" + digest, tagged, repository}
}
