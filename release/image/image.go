// Package image builds the container image from the binary and a few small files. It needs neither a container runtime
// nor a base image. The same input results in the same bytes.
package image

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// About holds the metadata for the labels of the image and for the modification times of its files.
type About struct {
	// Version is the version of the release. Revision is the hash of the commit. Both may be empty.
	Version, Revision string
	// Created is the creation time of the image and the modification time of its files, truncated to seconds.
	Created time.Time
}

// labels returns the labels of the image. The OCI specification defines their keys.
func (a About) labels() map[string]string {
	labels := map[string]string{
		"title":         "k8singress",
		"description":   "Caddy as a Kubernetes ingress controller",
		"url":           "https://github.com/k8singress/k8singress",
		"source":        "https://github.com/k8singress/k8singress",
		"documentation": "https://github.com/k8singress/k8singress/tree/main/docs",
		"licenses":      "Apache-2.0",
		"version":       a.Version,
		"revision":      a.Revision,
		"created":       a.Created.UTC().Format(time.RFC3339),
	}
	named := map[string]string{}
	for name, value := range labels {
		if value != "" {
			named["org.opencontainers.image."+name] = value
		}
	}
	return named
}

// config returns the configuration of the image: the default user, command and environment variables of a container. A
// pod can override them.
func config(a About) v1.Config {
	return v1.Config{
		User:       strconv.Itoa(User),
		Entrypoint: []string{Program},
		Cmd:        []string{"run", "--config", "/etc/caddy/Caddyfile"},
		Env: []string{
			"PATH=/usr/bin",
			"XDG_CONFIG_HOME=" + DataFolder,
			"XDG_DATA_HOME=" + DataFolder,
		},
		WorkingDir:   "/",
		ExposedPorts: map[string]struct{}{"80/tcp": {}, "443/tcp": {}, "443/udp": {}},
		Labels:       a.labels(),
	}
}

// Archive returns the files of the image as a compressed tar archive, which is the only layer of the image. The
// Dockerfile uses the same archive.
func Archive(program []byte, at time.Time) ([]byte, error) {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.DefaultCompression)
	if err != nil {
		return nil, err
	}
	if err := writeTree(w, program, at.Truncate(time.Second)); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return compressed.Bytes(), nil
}

// New returns the image for a platform. archive is the result of the function Archive, and becomes the only layer of
// the image.
func New(platform v1.Platform, archive []byte, about About) (v1.Image, error) {
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("making the layer: %w", err)
	}
	created := v1.Time{Time: about.Created.UTC().Truncate(time.Second)}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base, err = mutate.ConfigFile(base, &v1.ConfigFile{
		OS: platform.OS, Architecture: platform.Architecture, Variant: platform.Variant, Created: created,
		Config: config(about),
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, fmt.Errorf("making the configuration: %w", err)
	}
	history := v1.History{Created: created, CreatedBy: "make image", Comment: "the program, and the files beside it"}
	return mutate.Append(base, mutate.Addendum{Layer: layer, History: history, MediaType: types.OCILayer})
}
