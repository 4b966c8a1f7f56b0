package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/k8singress/k8singress/release/build"
	"github.com/k8singress/k8singress/release/sbom"
	"github.com/k8singress/k8singress/release/statement"
)

// imageLine and versionLine match the lines in manifests that contain the image and the version. For a release, the
// values in these lines are replaced.
var (
	imageLine   = regexp.MustCompile(`(?m)^([ -]*image: )"\S+/k8singress(:\S*)?"$`)
	versionLine = regexp.MustCompile(`(?m)^( *app\.kubernetes\.io/version: ).*$`)
)

// next is the template of the message that is printed after the files of a release were written. It lists the commands
// for publishing the release.
//
//go:embed next.txt
var next string

// files writes the files of a release to a folder. sums contains the hash of each file, in the order in which the files
// are written.
type files struct {
	folder string
	sums   []sum
}

type sum struct{ name, sha256 string }

func (f *files) write(name string, data []byte, mode fs.FileMode) error {
	path := filepath.Join(f.folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", name, err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	f.add(name, data)
	return nil
}

func (f *files) add(name string, data []byte) {
	hash := sha256.Sum256(data)
	f.sums = append(f.sums, sum{name, hex.EncodeToString(hash[:])})
}

// everything writes all files of a release to a folder. It needs neither access to a registry nor a signing key.
func (o *options) everything(ctx context.Context, source build.Source, log io.Writer) error {
	made, err := o.image(ctx, source, log)
	if err != nil {
		return err
	}
	f := &files{folder: o.out}
	plan := statement.Build{Version: source.Version, Revision: source.Revision, Commands: map[string][]string{}}
	for _, m := range made.platforms {
		if plan.Go, err = f.addProgram(m, source); err != nil {
			return err
		}
		plan.Commands[m.platform.String()] = o.command(m, source)
	}
	reference := o.name + ":" + source.Tag() + "@" + made.digest
	manifests := f.addManifests(filepath.Join(o.root, "deploy"), reference, source.Tag())
	if err := errors.Join(manifests, o.addChart(f, source), f.addLayout()); err != nil {
		return err
	}
	if err := f.addProvenance(plan, o.name, made.digest); err != nil {
		return err
	}
	if err := f.writeSums(); err != nil {
		return err
	}
	return o.tell(log, source, made.digest)
}

// command returns the command that compiled a binary, for the SLSA provenance. For a prebuilt binary, which was given
// with -binary, it returns a remark instead.
func (o *options) command(m made, source build.Source) []string {
	if given := o.programs[m.platform.String()]; given != "" {
		return []string{"the binary was given with -binary, and not compiled by this command"}
	}
	return append(build.Environment(m.platform), source.Command(programFile(m))...)
}

// programFile returns the file name under which the binary for a platform is published.
func programFile(m made) string { return "k8singress-" + build.Name(m.platform) }

// addProgram adds the binary for a platform and its SBOM (list of modules) to the release. It returns the version of Go
// with which the binary was compiled.
func (f *files) addProgram(m made, source build.Source) (string, error) {
	data, err := os.ReadFile(m.program)
	if err != nil {
		return "", fmt.Errorf("reading the binary: %w", err)
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return "", fmt.Errorf("reading the build information of %s: %w", m.program, err)
	}
	name := programFile(m)
	if err := f.write(name, data, 0o755); err != nil {
		return "", err
	}
	var list bytes.Buffer
	program := sbom.Program{File: name, SHA256: f.sums[len(f.sums)-1].sha256, Version: source.Version,
		Created: source.Time, Info: info}
	if err := sbom.Write(&list, program); err != nil {
		return "", err
	}
	return info.GoVersion, f.write(name+".spdx.json", list.Bytes(), 0o644)
}

// addManifests adds the manifests in a folder to the release, after setting the image and the version in them.
func (f *files) addManifests(folder, reference, version string) error {
	replaced := false
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		replaced = replaced || imageLine.Match(data)
		data = imageLine.ReplaceAll(data, []byte("${1}"+reference))
		data = versionLine.ReplaceAll(data, []byte(`${1}"`+version+`"`))
		return f.write(filepath.Join("deploy", relative), data, 0o644)
	})
	if err == nil && !replaced {
		err = fmt.Errorf("no manifest in %s has a line with the image", folder)
	}
	return err
}

// addLayout adds the hashes of the files in the OCI image layout to the release. The files must have been written
// before.
func (f *files) addLayout() error {
	return filepath.WalkDir(filepath.Join(f.folder, "image"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(f.folder, path)
		f.add(name, data)
		return err
	})
}

// addProvenance adds an in-toto statement that describes how the image and all files added so far were built.
func (f *files) addProvenance(plan statement.Build, image, digest string) error {
	algorithm, value, _ := strings.Cut(digest, ":")
	subjects := []statement.Subject{{Name: image, Digest: map[string]string{algorithm: value}}}
	for _, s := range f.sums {
		subjects = append(subjects, statement.Subject{Name: s.name, Digest: map[string]string{"sha256": s.sha256}})
	}
	var text bytes.Buffer
	if err := statement.Write(&text, subjects, plan); err != nil {
		return err
	}
	return f.write("provenance.json", text.Bytes(), 0o644)
}

// writeSums writes the hashes of all files in the format of `sha256sum --check`.
func (f *files) writeSums() error {
	slices.SortFunc(f.sums, func(a, b sum) int { return strings.Compare(a.name, b.name) })
	var text strings.Builder
	for _, s := range f.sums {
		fmt.Fprintf(&text, "%s  %s\n", s.sha256, s.name)
	}
	if err := os.WriteFile(filepath.Join(f.folder, "SHA256SUMS"), []byte(text.String()), 0o644); err != nil {
		return fmt.Errorf("writing the sums: %w", err)
	}
	return nil
}

// tell prints the commands for publishing the release, which need a registry and signing keys.
func (o *options) tell(log io.Writer, source build.Source, digest string) error {
	text, err := template.New("next").Parse(next)
	if err != nil {
		return fmt.Errorf("reading next.txt: %w", err)
	}
	return text.Execute(log, map[string]any{
		"Out": o.out, "Registry": path.Dir(o.name), "Name": o.name, "Version": source.Version, "Tag": source.Tag(),
		"Digest": digest,
		"Dirty":  strings.HasSuffix(source.Version, "+dirty"), "Untagged": strings.HasPrefix(source.Version, "v0.0.0-"),
	})
}
