package chart

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// renderHelm3 does the same as render, with Helm 3.
func renderHelm3(with values, as install) (rendered, error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return rendered{}, err
	}
	client := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	client.DryRun, client.ClientOnly = true, true
	client.ReleaseName, client.Namespace = cmp.Or(as.name, releaseName), cmp.Or(as.namespace, "web")
	if client.KubeVersion, err = chartutil.ParseKubeVersion(cmp.Or(as.version, newest)); err != nil {
		return rendered{}, err
	}
	made, err := client.Run(chart, with)
	if err != nil {
		return rendered{}, err
	}
	return rendered{made.Manifest, made.Info.Notes}, nil
}

// TestHelm3 checks that Helm 3 and Helm 4 render the same objects and the same notes for each shape.
func TestHelm3(t *testing.T) {
	for _, s := range variants(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			want := mustRender(t, s.with)
			got, err := renderHelm3(s.with, install{})
			if err != nil {
				t.Fatal(err)
			}
			if got.notes != want.notes {
				t.Errorf("Helm 3 says\n%s\nand Helm 4 says\n%s", got.notes, want.notes)
			}
			ours, theirs := want.documents(), got.documents()
			if len(ours) != len(theirs) {
				t.Fatalf("Helm 3 makes %d objects, and Helm 4 makes %d", len(theirs), len(ours))
			}
			for i, document := range ours {
				if document != theirs[i] {
					t.Errorf("Helm 3 makes\n%s\nand Helm 4 makes\n%s", theirs[i], document)
				}
			}
		})
	}
}

// documents returns the sorted texts of the objects. The texts of Helm 3 and Helm 4 differ in empty lines, which are
// removed, and in the order of kinds of other projects.
func (r rendered) documents() (all []string) {
	for document := range strings.SplitSeq(r.manifest, "---\n") {
		all = append(all, strings.TrimSpace(document))
	}
	slices.Sort(all)
	return all
}
