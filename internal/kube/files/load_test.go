package files

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
)

var update = flag.Bool("update", false, "rewrite testdata/*/want.yaml")

// outcome is the content of want.yaml: all verdicts, then all objects.
type outcome struct {
	Verdicts []verdict `json:"verdicts"`
	Objects  []named   `json:"objects"`
}

type named struct {
	Name   string       `json:"name"`
	Object kinds.Object `json:"object"`
}

type verdict struct {
	Object   string           `json:"object"`
	Problems []report.Problem `json:"problems"`
}

func outcomeOf(s *snapshot.Snapshot, verdicts []*report.Verdict) *outcome {
	o := &outcome{}
	for _, object := range objectsOf(s) {
		o.Objects = append(o.Objects, named{snapshot.RefOf(object).String(), object})
	}
	for _, v := range verdicts {
		o.Verdicts = append(o.Verdicts, verdict{v.Object.String(), v.Problems})
	}
	return o
}

func objectsOf(s *snapshot.Snapshot) []kinds.Object {
	var list []kinds.Object
	for _, kind := range kinds.All {
		list = slices.AppendSeq(list, s.OfKind(kind.Name).All())
	}
	slices.SortStableFunc(list, func(a, b kinds.Object) int {
		return report.Compare(snapshot.RefOf(a), snapshot.RefOf(b))
	})
	return list
}

func TestLoad(t *testing.T) {
	cases, err := filepath.Glob("testdata/*/in")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, dir := range cases {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			s, verdicts, err := Load(dir)
			if err != nil {
				t.Fatal(err)
			}
			checkVersions(t, s)
			got, err := yaml.Marshal(outcomeOf(s, verdicts))
			if err != nil {
				t.Fatal(err)
			}
			compareFile(t, filepath.Join(filepath.Dir(dir), "want.yaml"), got)
		})
	}
}

// checkVersions checks the resource versions and removes them, because they would make want.yaml hard to read.
func checkVersions(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	for _, o := range objectsOf(s) {
		if len(o.GetResourceVersion()) != 24 {
			t.Errorf("%s: resource version %q is not a digest", snapshot.RefOf(o), o.GetResourceVersion())
		}
		o.SetResourceVersion("")
	}
}

func compareFile(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

func TestVerdictsContainNoSecrets(t *testing.T) {
	_, verdicts, err := Load("testdata/secrets/in")
	if err != nil || len(verdicts) == 0 {
		t.Fatalf("%d verdicts, %v", len(verdicts), err)
	}
	for _, v := range verdicts {
		for _, p := range v.Problems {
			if strings.Contains(p.Message, "hunter2") || strings.Contains(p.Message, "4711") {
				t.Errorf("%s: the message holds a value: %s", v.Object, p.Message)
			}
		}
	}
}

func TestLoadOneFile(t *testing.T) {
	s, verdicts, err := Load("testdata/kinds/in/sub/deep/ingress.yml")
	if err != nil || len(verdicts) != 0 || snapshot.Of[*networkingv1.Ingress](s).Len() != 1 {
		t.Errorf("%v, verdicts %v", err, verdicts)
	}
}

func TestLoadNothing(t *testing.T) {
	if _, _, err := Load("testdata/no-such-folder"); err == nil || !strings.Contains(err.Error(), "no-such-folder") {
		t.Errorf("error %v should name the folder", err)
	}
	s, verdicts, err := Load(t.TempDir())
	if err != nil || len(verdicts) != 0 || len(s.Changed) != 0 {
		t.Errorf("an empty folder: %v, %v", verdicts, err)
	}
}

func TestOneFormForAll(t *testing.T) {
	s, _, err := Load("testdata/kinds/in")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, o := range objectsOf(s) {
		seen[snapshot.RefOf(o).Kind] = true
	}
	for _, row := range kinds.All {
		if !seen[row.Name] && !row.NoManifest {
			t.Errorf("testdata/kinds has no %s", row.Name)
		}
	}
}

func TestStayNamesFewObjects(t *testing.T) {
	all := configMap("a", "1") + configMap("b", "1") + configMap("c", "1") + configMap("d", "1")
	for kept, want := range map[int]string{
		1: "ConfigMap/default/d keeps its previous state until the file is fixed",
		2: "ConfigMap/default/c, ConfigMap/default/d keep their previous state until the file is fixed",
		3: "ConfigMap/default/b, ConfigMap/default/c, ConfigMap/default/d keep their previous state until the " +
			"file is fixed",
		4: "4 objects keep their previous state until the file is fixed",
	} {
		documents := strings.SplitAfter(all, "---\n")
		p := parse("a.yaml", []byte(strings.Join(documents[:4-kept], "")+"kind: [\n"))
		p.keep(parse("a.yaml", []byte(all)))
		if got := p.problems[len(p.problems)-1].Message; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func FuzzLoad(f *testing.F) {
	seeds, _ := filepath.Glob("testdata/*/in/*.*")
	for _, path := range seeds {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, filepath.Ext(path) == ".json")
	}
	f.Fuzz(func(t *testing.T, data []byte, isJSON bool) {
		name := "a.yaml"
		if isJSON {
			name = "a.json"
		}
		before := parse(name, []byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"))
		p := parse(name, data)
		p.keep(before)
		m := new(merger)
		objects, _ := m.merge([]*parsed{p, parse("b.yaml", data)})
		verdicts := m.verdicts()
		for _, o := range objects {
			ref := snapshot.RefOf(o)
			if ref.Kind == "" || ref.Name == "" || strings.ContainsAny(ref.String(), "\x00{}") ||
				o.GetResourceVersion() == "" {
				t.Errorf("object %q of version %q", ref, o.GetResourceVersion())
			}
		}
		if !slices.IsSortedFunc(verdicts,
			func(a, b *report.Verdict) int { return report.Compare(a.Object, b.Object) }) {
			t.Error("verdicts are not sorted")
		}
	})
}
