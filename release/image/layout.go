package image

import (
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Platform is an image, together with the platform on which it runs.
type Platform struct {
	v1.Platform

	Image v1.Image
}

// plain wraps an image so that its entry in an index has no artifact type. An artifact type marks content that cannot
// be run, so some clients would skip the image.
type plain struct{ v1.Image }

// ArtifactType returns "". Without this method, the library would use the media type of the image's configuration as
// the artifact type.
func (plain) ArtifactType() (string, error) { return "", nil }

// Index returns a multi-platform image: an index with one image for each platform.
func Index(about About, platforms []Platform) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		platform := p.Platform
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: plain{p.Image}, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &platform},
		})
	}
	annotated, ok := mutate.Annotations(index, about.labels()).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("the annotated index is a %T", annotated)
	}
	return annotated, nil
}

// WriteLayout writes an index to folder in the OCI image layout, with the given tag. It first deletes the contents of
// folder.
func WriteLayout(folder, tag string, index v1.ImageIndex) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the previous layout: %w", err)
	}
	path, err := layout.Write(folder, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return fmt.Errorf("writing the layout: %w", err)
	}
	if err := path.AppendIndex(index,
		layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return fmt.Errorf("writing the images into the layout: %w", err)
	}
	return nil
}
