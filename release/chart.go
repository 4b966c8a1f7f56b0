package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/k8singress/k8singress/release/build"
)

// edit describes the replacement of one line in a file of the Helm chart. line is a regular expression for the old
// line, and must match exactly once.
type edit struct {
	file, line string
	value      string
}

// edits returns the changes that set the version and the image in the Helm chart, so that the chart installs the image
// of the same release.
func (o *options) edits(source build.Source) []edit {
	registry, _, _ := strings.Cut(o.name, "/")
	return []edit{
		{"Chart.yaml", `(?m)^version: .*$`, "version: " + source.Tag()},
		{"Chart.yaml", `(?m)^appVersion: .*$`, `appVersion: "` + source.Tag() + `"`},
		{"Chart.yaml", `(?m)^  k8singress\.io/image: .*$`, "  k8singress.io/image: " + o.name},
		{"Chart.yaml", `(?m)^  k8singress\.io/public: .*$`, `  k8singress.io/public: "true"`},
		{"values.yaml", `(?m)^    registry: ghcr\.io$`, "    registry: " + registry},
	}
}

// addChart adds the packed Helm chart to the release. The archive has the same format as the output of `helm package`,
// but contains the time of the source instead of the current time. As in Helm's archives, all paths start with the name
// of the chart.
func (o *options) addChart(f *files, source build.Source) error {
	folder := filepath.Join(o.root, "charts", "k8singress")
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	ignored, err := os.ReadFile(filepath.Join(folder, ".helmignore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the chart: %w", err)
	}
	err = filepath.WalkDir(folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || matches(strings.Fields(string(ignored)), entry.Name()) {
			return err
		}
		relative, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		data, err := o.chartFile(file, relative, source)
		if err != nil {
			return err
		}
		return addToArchive(archive, path.Join("k8singress", filepath.ToSlash(relative)), data, source.Time)
	})
	if err := errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("packing the chart: %w", err)
	}
	return f.write("k8singress-"+source.Tag()+".tgz", packed.Bytes(), 0o644)
}

// matches reports whether the file name matches one of the patterns from .helmignore. Patterns with slashes are not
// supported, because the chart does not use them.
func matches(patterns []string, name string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(p, name); ok && err == nil {
			return true
		}
	}
	return false
}

// chartFile returns the content of a file of the Helm chart after applying edits.
func (o *options) chartFile(file, relative string, source build.Source) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, e := range o.edits(source) {
		if e.file != relative {
			continue
		}
		line := regexp.MustCompile(e.line)
		if n := len(line.FindAllIndex(data, -1)); n != 1 {
			return nil, fmt.Errorf("%s has %d lines that match %s, and must have one", relative, n, e.line)
		}
		data = line.ReplaceAllLiteral(data, []byte(e.value))
	}
	return data, nil
}

func addToArchive(archive *tar.Writer, name string, data []byte, at time.Time) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: at,
		Format: tar.FormatPAX}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err := archive.Write(data)
	return err
}
