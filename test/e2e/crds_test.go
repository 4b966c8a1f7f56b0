package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// definitionFiles are the CustomResourceDefinitions of the kinds that the chart uses, by the module that contains them.
var definitionFiles = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cert-manager/cert-manager": {
		"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml",
	},
	"github.com/kedacore/keda/v2": {"config/crd/bases/keda.sh_scaledobjects.yaml"},
}

// definitionsVariable is the environment variable with the paths of these files. Inside the cluster, no module can be
// downloaded.
const definitionsVariable = "K8SINGRESS_CRDS"

// fetchDefinitions makes Go download and verify the modules in testdata/crds.
func fetchDefinitions(ctx context.Context) error {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json")
	command.Dir = "testdata/crds"
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, failed := command.Output()
	var paths []string
	for modules := json.NewDecoder(bytes.NewReader(out)); ; {
		var module struct{ Path, Dir, Error string }
		err := modules.Decode(&module)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && module.Error != "" {
			err = errors.New(module.Error)
		}
		if err != nil {
			return fmt.Errorf("downloading what testdata/crds requires: %w", err)
		}
		for _, file := range definitionFiles[module.Path] {
			paths = append(paths, filepath.Join(module.Dir, file))
		}
	}
	if failed != nil {
		return fmt.Errorf("downloading what testdata/crds requires: %w\n%s", failed, &stderr)
	}
	list, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	return os.Setenv(definitionsVariable, string(list))
}

// define creates the definitions until the test ends, and waits until their kinds are served.
func (c *cluster) define(client dynamic.Interface) {
	c.Helper()
	var paths []string
	c.must(json.Unmarshal([]byte(os.Getenv(definitionsVariable)), &paths))
	wanted := 0
	for _, files := range definitionFiles {
		wanted += len(files)
	}
	if len(paths) != wanted {
		c.Fatalf("the definitions are %q", paths)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
	for _, path := range paths {
		text, err := os.ReadFile(path)
		c.must(err)
		definition := new(unstructured.Unstructured)
		c.must(yaml.Unmarshal(text, &definition.Object))
		definition, err = definitions.Create(c.Context(), definition, metav1.CreateOptions{})
		c.must(err)
		name := definition.GetName()
		c.Cleanup(func() {
			if err := definitions.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
				c.Error(err)
			}
		})
		c.await(name, func() error {
			definition, err := definitions.Get(c.Context(), name, metav1.GetOptions{})
			if err == nil && !established(definition) {
				err = errors.New("it is not established")
			}
			return err
		})
	}
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		if fields, _ := condition.(map[string]any); fields["type"] == "Established" {
			return fields["status"] == "True"
		}
	}
	return false
}
