package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// TestChartFields sends every object of every scenario to the API server as a dry run, with a Deployment and with a
// DaemonSet. It checks that there are no unknown fields, also in objects of Prometheus, KEDA and cert-manager.
func TestChartFields(t *testing.T) {
	c := newCluster(t)
	client := c.dynamicClient()
	c.define(client)
	var scenarios []struct {
		Name   string         `json:"name"`
		Values map[string]any `json:"values"`
	}
	c.readYAML("../chart/testdata/scenarios.yaml", &scenarios)
	for _, s := range scenarios {
		for _, kind := range []string{"Deployment", "DaemonSet"} {
			t.Run(s.Name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				c := c.in(t)
				for _, object := range c.template(s.Values, "--set", "controller.kind="+kind) {
					c.must(c.dryRun(client, object))
				}
			})
		}
	}
	var wrong []struct {
		Values map[string]any `json:"values"`
		Says   string         `json:"says"`
	}
	c.readYAML("testdata/wrong-fields.yaml", &wrong)
	for _, w := range wrong {
		t.Run(w.Says, func(t *testing.T) {
			t.Parallel()
			c := c.in(t)
			var refused error
			for _, object := range c.template(w.Values) {
				refused = errors.Join(refused, c.dryRun(client, object))
			}
			if refused == nil || !strings.Contains(refused.Error(), w.Says) {
				t.Errorf("the API server says %v, want %q", refused, w.Says)
			}
		})
	}
}

func (c *cluster) readYAML(file string, into any) {
	c.Helper()
	text, err := os.ReadFile(file)
	c.must(err)
	c.must(yaml.Unmarshal(text, into))
}

// template returns the objects that Helm renders.
func (c *cluster) template(values map[string]any, arguments ...string) (objects []*unstructured.Unstructured) {
	c.Helper()
	text, err := yaml.Marshal(values)
	c.must(err)
	file := filepath.Join(c.TempDir(), "values.yaml")
	c.must(os.WriteFile(file, text, 0o600))
	arguments = append([]string{"template", "ingress", ownChart, "--namespace", "web", "--values", file}, arguments...)
	command := exec.CommandContext(c.Context(), c.inside.Programs.Helm, arguments...)
	command.Env = c.helmEnvironment()
	out, err := command.Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		c.Fatalf("helm template: %v\n%s", err, failed.Stderr)
	}
	c.must(err)
	return c.decode(string(out))
}

// decode reads the objects of a manifest.
func (c *cluster) decode(manifest string) (objects []*unstructured.Unstructured) {
	c.Helper()
	for documents := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), len(manifest)); ; {
		object := new(unstructured.Unstructured)
		err := documents.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		c.must(err)
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// dryRun sends an object to the API server as a dry run. It creates the namespace of the object if necessary.
func (c *cluster) dryRun(client dynamic.Interface, object *unstructured.Unstructured) error {
	if name := object.GetNamespace(); name != "" {
		c.namespaceFor(name)
	}
	text, err := object.MarshalJSON()
	if err != nil {
		return err
	}
	force := true
	_, err = objectsOf(client, object).Patch(c.Context(), object.GetName(), types.ApplyPatchType, text,
		metav1.PatchOptions{
			FieldManager: "helm", Force: &force, DryRun: []string{metav1.DryRunAll},
			FieldValidation: metav1.FieldValidationStrict,
		})
	return err
}

// dynamicClient returns an administrator's client for all kinds.
func (c *cluster) dynamicClient() dynamic.Interface {
	c.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", c.inside.Kubeconfig())
	c.must(err)
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	c.must(err)
	return client
}

// objectsOf returns the client for objects of the same kind and namespace.
func objectsOf(client dynamic.Interface, object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	if object.GetNamespace() == "" {
		return client.Resource(resource)
	}
	return client.Resource(resource).Namespace(object.GetNamespace())
}

// namespaceFor creates a namespace if it does not exist. The namespace stays empty and is not deleted.
func (c *cluster) namespaceFor(name string) {
	c.Helper()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := c.CoreV1().Namespaces().Create(c.Context(), object, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		c.must(err)
	}
}
