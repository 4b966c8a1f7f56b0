package chart

import (
	"bufio"
	"cmp"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const chartFolder = "../../charts/k8singress"

// The range of Kubernetes versions that the chart supports: 1.25 to 1.36.
const (
	oldestMinor, oldest = 25, "v1.25.0"
	newestMinor, newest = 36, "v1.36.0"
)

const releaseName = "ingress"

// values are values of a chart, or a part of them.
type values = map[string]any

// rendered is the output of Helm: the manifest that it would apply, and the notes.
type rendered struct{ manifest, notes string }

// install holds the settings of an installation: the name and namespace of the release, and the version of the cluster.
type install struct {
	name      string
	namespace string
	version   string
}

// render does the same as `helm install --dry-run=client`.
func render(with values, as install) (rendered, error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return rendered{}, err
	}
	client := action.NewInstall(action.NewConfiguration())
	client.DryRunStrategy = action.DryRunClient
	client.ReleaseName, client.Namespace = cmp.Or(as.name, releaseName), cmp.Or(as.namespace, "web")
	if client.KubeVersion, err = chartcommon.ParseKubeVersion(cmp.Or(as.version, newest)); err != nil {
		return rendered{}, err
	}
	made, err := client.Run(chart, with)
	if err != nil {
		return rendered{}, err
	}
	r := made.(*release.Release)
	return rendered{r.Manifest, r.Info.Notes}, nil
}

func mustRender(t *testing.T, with values) rendered {
	t.Helper()
	r, err := render(with, install{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// objects returns the documents of a manifest.
func (r rendered) objects(t *testing.T) []values {
	t.Helper()
	var all []values
	reader := kyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(r.manifest)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		var object values
		if err == nil {
			err = yaml.UnmarshalStrict(document, &object)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if len(object) > 0 {
			all = append(all, object)
		}
	}
}

// readValues reads a file with values.
func readValues(t *testing.T, file string) values {
	t.Helper()
	var v values
	readYAML(t, file, &v)
	return v
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// together merges values. Later values take precedence.
func together(all ...values) values {
	sum := values{}
	for _, v := range all {
		for key, value := range v {
			below, isMap := value.(values)
			before, wasMap := sum[key].(values)
			if isMap && wasMap {
				sum[key] = together(before, below)
			} else if isMap {
				sum[key] = together(below)
			} else {
				sum[key] = value
			}
		}
	}
	return sum
}

// at returns values in which only the given path is set.
func at(path []string, value any) values {
	for i := len(path) - 1; i > 0; i-- {
		value = values{path[i]: value}
	}
	return values{path[0]: value}
}

// find returns the value at a path, and whether it exists.
func find(v values, path []string) (any, bool) {
	for i, name := range path {
		value, ok := v[name]
		if !ok || i == len(path)-1 {
			return value, ok
		}
		v, _ = value.(values)
	}
	return nil, false
}
