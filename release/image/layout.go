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

// Platform is an image, and what it runs on.
type Platform struct {
	v1.Platform

	Image v1.Image
}

// plain is an image that is said to be no artifact in an index, where that word is for what is not run. Some clients
// pass over such an entry.
type plain struct{ v1.Image }

// ArtifactType overrides what the library takes from the configuration's media type.
func (plain) ArtifactType() (string, error) { return "", nil }

// Index joins the images of all platforms under one name.
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

// WriteLayout writes an index as an OCI layout with a tag, in place of what the folder has.
func WriteLayout(folder, tag string, index v1.ImageIndex) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the former layout: %w", err)
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
