package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdxlib"
)

// published returns the content of a file of the release.
func published(t *testing.T, name ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{imageFolder(t), "dist"}, name...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// indexDigest returns the digest of the image in a registry.
func indexDigest(t *testing.T) string {
	t.Helper()
	index, err := layout.ImageIndexFromPath(filepath.Join(imageFolder(t), "dist", "image"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	return manifest.Manifests[0].Digest.String()
}

// TestSums checks that SHA256SUMS lists the right hash of each published file.
func TestSums(t *testing.T) {
	found := sums(t, filepath.Join(imageFolder(t), "dist"))
	named := map[string]string{}
	for text := range strings.Lines(string(published(t, "SHA256SUMS"))) {
		hash, name, _ := strings.Cut(strings.TrimSuffix(text, "\n"), "  ")
		named["/"+name] = hash
	}
	maps.DeleteFunc(found, func(name, _ string) bool {
		return name == "/SHA256SUMS" ||
			strings.HasPrefix(name, "/root/")
	})
	if !maps.Equal(found, named) {
		t.Errorf("the sums are %v, and the files have %v", named, found)
	}
}

// TestManifests checks that the manifests of a release name the image by its digest, so that a later image with the
// same tag is not used.
func TestManifests(t *testing.T) {
	text := string(published(t, "deploy", "cluster", "k8singress.yaml"))
	for _, want := range []string{
		"image: ghcr.io/k8singress/k8singress:" + testTag + "@" + indexDigest(t) + "\n",
		`app.kubernetes.io/version: "` + testTag + `"` + "\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
}

// TestSBOM checks the SBOM with the SPDX tools: it must be valid and contain the expected modules.
func TestSBOM(t *testing.T) {
	name := "k8singress-linux-" + here.Architecture
	document, err := spdxjson.Read(bytes.NewReader(published(t, name+".spdx.json")))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil || !slices.Equal(described, []common.ElementID{"Program"}) {
		t.Errorf("it describes %v, error %v", described, err)
	}
	ids, purls := map[common.ElementID]bool{}, []string{}
	for _, p := range document.Packages {
		if ids[p.PackageSPDXIdentifier] {
			t.Errorf("two packages have the identifier %s", p.PackageSPDXIdentifier)
		}
		ids[p.PackageSPDXIdentifier] = true
		purls = append(purls, p.PackageExternalReferences[0].Locator)
	}
	for _, want := range []string{"k8singress/k8singress@" + testVersion, "caddyserver/caddy/v2@v2.",
		"mholt/caddy-l4@v", "golang/stdlib@1."} {
		if !slices.ContainsFunc(purls, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%s is not in %v", want, purls)
		}
	}
	if got, want := document.Packages[0].PackageChecksums[0].Value,
		sums(t, filepath.Join(imageFolder(t), "dist"))["/"+name]; got != want {
		t.Errorf("it is of a program with the sum %s, and that here has %s", got, want)
	}
}

// TestProvenance checks that the statement has the hashes of all files and of the image.
func TestProvenance(t *testing.T) {
	var said struct {
		Type    string `json:"_type"`
		Subject []struct {
			Name   string
			Digest map[string]string
		}
		PredicateType string
		Predicate     struct {
			BuildDefinition struct {
				ResolvedDependencies []struct{ URI string }
			}
		}
	}
	if err := json.Unmarshal(published(t, "provenance.json"), &said); err != nil {
		t.Fatal(err)
	}
	if said.Type != "https://in-toto.io/Statement/v1" || said.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("it is a %s of %s", said.Type, said.PredicateType)
	}
	found := sums(t, filepath.Join(imageFolder(t), "dist"))
	for i, s := range said.Subject {
		want := found["/"+s.Name]
		if i == 0 {
			want = strings.TrimPrefix(indexDigest(t), "sha256:")
		}
		if want == "" || s.Digest["sha256"] != want {
			t.Errorf("it says that %s has the sum %s, and it has %s", s.Name, s.Digest["sha256"], want)
		}
	}
	if len(said.Subject) < 10 || len(said.Predicate.BuildDefinition.ResolvedDependencies) < 2 {
		t.Errorf("it says too little: %+v", said)
	}
}

// TestRemainingCommands checks that the command ends by printing the remaining steps as commands with the right files
// and digest.
func TestRemainingCommands(t *testing.T) {
	var said strings.Builder
	// Any Go binary will do.
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "dist")
	arguments := []string{"everything", "-root", "..", "-out", out, "-version", "v1.2.3", "-image",
		"registry.example.com/ingress",
		"-platforms", here.String(), "-binary", here.String() + "=" + path}
	if err := run(t.Context(), arguments, &said); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"skopeo copy --all oci:" + out + "/image:1.2.3 docker://registry.example.com/ingress:1.2.3\n",
		"helm push " + out + "/k8singress-1.2.3.tgz oci://registry.example.com/charts\n",
		"cosign sign registry.example.com/ingress@sha256:",
		"gh release create v1.2.3 ",
	} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("there is no %q in %s", want, said.String())
		}
	}
}
