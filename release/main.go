// Release builds the container image, or all files of a release, in a local folder. It does not publish anything.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/k8singress/k8singress/release/build"
	"github.com/k8singress/k8singress/release/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options holds the command line options.
type options struct {
	step               func(context.Context, build.Source, io.Writer) error
	root, out, version string
	// name is the name of the image, including the registry but without a tag.
	name      string
	platforms []v1.Platform
	// programs contains the paths of prebuilt binaries, which are given with -binary, by platform. For other platforms,
	// the binary is compiled.
	programs map[string]string
}

func run(ctx context.Context, arguments []string, log io.Writer) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	source, err := build.ReadSource(ctx, o.root, o.version)
	if err != nil {
		return err
	}
	return o.step(ctx, source, log)
}

func parse(arguments []string) (*options, error) {
	o := &options{platforms: build.Platforms, programs: map[string]string{}}
	set := flag.NewFlagSet("release", flag.ContinueOnError)
	set.StringVar(&o.root, "root", ".", "folder of the repository")
	set.StringVar(&o.out, "out", "dist", "output folder")
	set.StringVar(&o.version, "version", "", "version, such as v1.2.3; by default it comes from the git commit")
	set.StringVar(&o.name, "image", "ghcr.io/k8singress/k8singress", "name of the image in a registry, without a tag")
	set.Func("platforms", "platforms, comma-separated, such as linux/amd64,linux/arm/v7; default: all of a release",
		func(value string) (err error) {
			o.platforms = nil
			for name := range strings.SplitSeq(value, ",") {
				p, wrong := v1.ParsePlatform(name)
				if wrong != nil {
					return wrong
				}
				o.platforms = append(o.platforms, *p)
			}
			return nil
		})
	set.Func("binary", "PLATFORM=PATH of a binary to use instead of building it, such as linux/amd64=./caddy",
		func(value string) error {
			platform, path, ok := strings.Cut(value, "=")
			if !ok {
				return errors.New("the value must be PLATFORM=PATH, such as linux/amd64=./caddy")
			}
			o.programs[platform] = path
			return nil
		})
	steps := map[string]func(context.Context, build.Source, io.Writer) error{
		"image": o.onlyImage, "everything": o.everything,
	}
	if len(arguments) == 0 || steps[arguments[0]] == nil {
		return nil, errors.New("the first argument must be image or everything")
	}
	o.step = steps[arguments[0]]
	if err := set.Parse(arguments[1:]); err != nil {
		return nil, err
	}
	if !strings.Contains(o.name, "/") {
		return nil, fmt.Errorf("-image %s: it must be REGISTRY/NAME, such as registry.example.com/k8singress", o.name)
	}
	return o, nil
}

func (o *options) onlyImage(ctx context.Context, source build.Source, log io.Writer) error {
	_, err := o.image(ctx, source, log)
	return err
}

// made holds the results of building for one platform: the binary and the image.
type made struct {
	platform v1.Platform
	// program is the path of the binary.
	program string
	image   v1.Image
}

// images holds the results for all platforms. digest is the digest of the image index, which lists the images of all
// platforms.
type images struct {
	platforms []made
	digest    string
}

// image builds the images for all platforms. It writes them as an OCI image layout, and writes the archives that the
// Dockerfile uses.
func (o *options) image(ctx context.Context, source build.Source, log io.Writer) (all images, err error) {
	var platforms []image.Platform
	for _, p := range o.platforms {
		m, err := o.onePlatform(ctx, source, p, log)
		if err != nil {
			return all, err
		}
		all.platforms, platforms = append(all.platforms, m),
			append(platforms, image.Platform{Platform: p, Image: m.image})
	}
	index, err := image.Index(about(source), platforms)
	if err != nil {
		return all, err
	}
	digest, err := index.Digest()
	if err != nil {
		return all, fmt.Errorf("computing the digest of the image: %w", err)
	}
	all.digest = digest.String()
	layout := filepath.Join(o.out, "image")
	if err := image.WriteLayout(layout, source.Tag(), index); err != nil {
		return all, err
	}
	fmt.Fprintf(log, "The image is in %s, as an OCI layout with the tag %s.\n", layout, source.Tag())
	return all, nil
}

func about(source build.Source) image.About {
	return image.About{Version: source.Version, Revision: source.Revision, Created: source.Time}
}

func (o *options) onePlatform(ctx context.Context, source build.Source, p v1.Platform,
	log io.Writer) (m made, err error) {
	m.platform = p
	if m.program = o.programs[p.String()]; m.program == "" {
		if m.program, err = source.Program(ctx, filepath.Join(o.root, ".cache", "release"), p, log); err != nil {
			return m, err
		}
	}
	program, err := os.ReadFile(m.program)
	if err != nil {
		return m, fmt.Errorf("reading the binary: %w", err)
	}
	archive, err := image.Archive(program, source.Time)
	if err != nil {
		return m, err
	}
	fmt.Fprintf(log, "%s: %.1f MB, %.1f MB compressed\n", p, float64(len(program))/1e6, float64(len(archive))/1e6)
	path := filepath.Join(o.out, "root", p.String()+".tar.gz")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return m, fmt.Errorf("making the folder of the archives: %w", err)
	}
	if err := os.WriteFile(path, archive, 0o644); err != nil {
		return m, fmt.Errorf("writing the archive: %w", err)
	}
	m.image, err = image.New(p, archive, about(source))
	return m, err
}
