// Package oci reads and unpacks container images in the OCI layout, as `make image` writes it. The library with which
// release/ writes them cannot be used, because it needs newer modules than this version of Kubernetes.
package oci

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// Image is one image of a layout.
type Image struct {
	// Digest is the digest of its manifest.
	Digest digest.Digest
	// Config has the defaults for containers.
	Config specs.ImageConfig

	folder string
	layers []specs.Descriptor
}

// document is an index or a manifest.
type document struct {
	Manifests []specs.Descriptor `json:"manifests"`
	Config    specs.Descriptor   `json:"config"`
	Layers    []specs.Descriptor `json:"layers"`
}

// errNothing is returned for an index without an image for this machine.
var errNothing = errors.New("it has nothing")

// Open reads the first image for this machine from a layout.
func Open(folder string) (*Image, error) {
	content, err := os.ReadFile(filepath.Join(folder, specs.ImageIndexFile))
	if err != nil {
		return nil, fmt.Errorf("opening an image: %w", err)
	}
	image := &Image{folder: folder}
	if err := image.find(content); err != nil {
		return nil, fmt.Errorf("reading the image in %s: %w", folder, err)
	}
	return image, nil
}

// find follows indexes to a manifest.
func (i *Image) find(content []byte) error {
	var d document
	if err := json.Unmarshal(content, &d); err != nil {
		return err
	}
	if d.Config.Digest != "" {
		return i.read(d)
	}
	for _, m := range d.Manifests {
		if !isForThisMachine(m.Platform) {
			continue
		}
		content, err := i.blob(m.Digest)
		if err != nil {
			return err
		}
		i.Digest = m.Digest
		// If the platform of an index is not declared, it may have no suitable image.
		if err := i.find(content); !errors.Is(err, errNothing) {
			return err
		}
	}
	return fmt.Errorf("%w for linux/%s", errNothing, runtime.GOARCH)
}

func isForThisMachine(p *specs.Platform) bool {
	return p == nil || (p.OS == "linux" && p.Architecture == runtime.GOARCH)
}

func (i *Image) read(manifest document) error {
	content, err := i.blob(manifest.Config.Digest)
	if err != nil {
		return err
	}
	var config specs.Image
	if err := json.Unmarshal(content, &config); err != nil {
		return err
	}
	i.Config, i.layers = config.Config, manifest.Layers
	return nil
}

// blob returns a small file of the layout.
func (i *Image) blob(d digest.Digest) ([]byte, error) {
	path, err := i.path(d)
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if d.Algorithm().FromBytes(content) != d {
		return nil, errors.New("wrong content of " + path)
	}
	return content, nil
}

func (i *Image) path(d digest.Digest) (string, error) {
	if err := d.Validate(); err != nil {
		return "", err
	}
	return filepath.Join(i.folder, specs.ImageBlobsDir, d.Algorithm().String(), d.Encoded()), nil
}
