package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// packed returns the content of each file in a packed chart, by path.
func packed(t *testing.T, data []byte) map[string]string {
	t.Helper()
	content, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for archive := tar.NewReader(content); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		found[h.Name] = string(text)
	}
}

// TestChart checks that the packed chart contains all files of the source, with the version and the image of the
// release.
func TestChart(t *testing.T) {
	files := packed(t, published(t, "k8singress-"+testTag+".tgz"))
	for _, want := range []string{"version: " + testTag + "\n", `appVersion: "` + testTag + `"` + "\n",
		"name: k8singress\n", "k8singress.io/public: \"true\"\n"} {
		if text := files["k8singress/Chart.yaml"]; !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
	var want []string
	for name := range sums(t, filepath.Join("..", "charts", "k8singress")) {
		want = append(want, "k8singress"+name)
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("it has %v, and the chart has %v", got, want)
	}
}

// TestChartOfAnotherRegistry checks that the chart of a release for another registry installs the image from there.
func TestChartOfAnotherRegistry(t *testing.T) {
	// Any Go binary will do.
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "dist")
	arguments := []string{"everything", "-root", "..", "-out", out, "-version", "v1.2.3", "-image",
		"registry.example.com/team/k8singress",
		"-platforms", here.String(), "-binary", here.String() + "=" + path}
	if err := run(t.Context(), arguments, io.Discard); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "k8singress-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"Chart.yaml":  "  k8singress.io/image: registry.example.com/team/k8singress\n",
		"values.yaml": "    registry: registry.example.com\n",
	} {
		if text := packed(t, data)["k8singress/"+file]; !strings.Contains(text, want) {
			t.Errorf("there is no %q in %s", want, text)
		}
	}
}
