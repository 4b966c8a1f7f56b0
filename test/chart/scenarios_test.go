package chart

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// scenario is one shape in testdata/scenarios.yaml.
type scenario struct {
	Name   string   `json:"name"`
	Values values   `json:"values"`
	Both   *bool    `json:"both"`
	Want   []values `json:"want"`
	// Arguments and Caddyfile are expected parts of the controller's command line and Caddyfile. Notes are expected
	// parts of NOTES.
	Arguments []string `json:"arguments"`
	Caddyfile []string `json:"caddyfile"`
	Notes     []string `json:"notes"`
}

// variant is a scenario with one kind of workload.
type variant struct {
	scenario
	name string
	with values
}

// variants returns all scenarios, each as a Deployment and as a DaemonSet unless Both is false.
func variants(t *testing.T) (all []variant) {
	t.Helper()
	var scenarios []scenario
	readYAML(t, "testdata/scenarios.yaml", &scenarios)
	for _, s := range scenarios {
		if s.Both != nil && !*s.Both {
			all = append(all, variant{s, s.Name, s.Values})
			continue
		}
		for _, kind := range []string{"Deployment", "DaemonSet"} {
			all = append(all, variant{s, s.Name + "/" + kind,
				together(s.Values, values{"controller": values{"kind": kind}})})
		}
	}
	return all
}

// TestScenarios renders each shape. It checks that Kubernetes knows all fields of its objects, and that the binary
// accepts its Caddyfile and its command line.
func TestScenarios(t *testing.T) {
	program := controllerProgram(t)
	for _, s := range variants(t) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := mustRender(t, s.with)
			objects := r.objects(t)
			for _, object := range objects {
				decode(t, object)
			}
			s.check(t, r, objects)
			checkProgram(t, program, objects)
		})
	}
	for _, shape := range shapes {
		t.Run("deploy "+shape, func(t *testing.T) {
			t.Parallel()
			objects := renderShape(t, shape).objects(t)
			for _, object := range objects {
				decode(t, object)
			}
			checkProgram(t, program, objects)
		})
	}
}

// programs is the folder in which controllerProgram builds the program. TestMain removes it.
var programs string

func TestMain(m *testing.M) {
	flag.Parse()
	var err error
	if programs, err = os.MkdirTemp("", "chart"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(programs)
	os.Exit(code)
}

var buildOnce = sync.OnceValues(func() (output []byte, err error) {
	build := exec.Command("go", "build", "-o", filepath.Join(programs, "caddy"), "./cmd/caddy")
	build.Dir = "../.."
	return build.CombinedOutput()
})

// controllerProgram returns the path of the controller's program, which is built once for all tests.
func controllerProgram(t *testing.T) string {
	t.Helper()
	if out, err := buildOnce(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(programs, "caddy")
}

// check compares the output with the expectations of the scenario.
func (s *scenario) check(t *testing.T, r rendered, objects []values) {
	t.Helper()
	for _, want := range s.Want {
		if !slices.ContainsFunc(objects, func(object values) bool { return has(object, want) }) {
			t.Errorf("there is no object with %v", want)
		}
	}
	for _, says := range s.Notes {
		if !strings.Contains(r.notes, says) {
			t.Errorf("NOTES lacks %q:\n%s", says, r.notes)
		}
	}
	caddyfile, arguments := controller(t, objects)
	for _, line := range s.Caddyfile {
		if !strings.Contains(caddyfile, "\t"+line+"\n") {
			t.Errorf("the Caddyfile has no line %q:\n%s", line, caddyfile)
		}
	}
	for _, argument := range s.Arguments {
		if !slices.Contains(arguments, argument) {
			t.Errorf("%s is not among the arguments %v", argument, arguments)
		}
	}
}

// has reports whether value contains want: equal scalars, all keys of a map, and each element of a list at any
// position.
func has(value, want any) bool {
	switch want := want.(type) {
	case values:
		got, ok := value.(values)
		for name, part := range want {
			ok = ok && has(got[name], part)
		}
		return ok
	case []any:
		got, _ := value.([]any)
		for _, element := range want {
			if !slices.ContainsFunc(got, func(g any) bool { return has(g, element) }) {
				return false
			}
		}
		return true
	}
	return fmt.Sprint(value) == fmt.Sprint(want)
}

// foreign lists the API groups of other projects. Their definitions are used in test/e2e.
var foreign = []string{"monitoring.coreos.com", "keda.sh", "cert-manager.io"}

// decode returns an object as its Kubernetes type, and fails the test if it has unknown fields. It returns nil for
// objects of other projects.
func decode(t *testing.T, object values) runtime.Object {
	t.Helper()
	strict := json.SerializerOptions{Strict: true, Yaml: true}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	decoded, kind, err := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme,
		strict).Decode(text, nil, nil)
	if runtime.IsNotRegisteredError(err) && slices.Contains(foreign, kind.Group) {
		return nil
	}
	if err != nil {
		t.Fatalf("%v: %v", object["kind"], err)
	}
	return decoded
}

// controller returns the Caddyfile and the arguments of the controller.
func controller(t *testing.T, objects []values) (caddyfile string, arguments []string) {
	t.Helper()
	for _, object := range objects {
		text, found := find(object, []string{"data", "Caddyfile"})
		component, _ := find(object, []string{"metadata", "labels", "app.kubernetes.io/component"})
		if component != "controller" {
			continue
		}
		if found {
			caddyfile = text.(string)
		}
		if containers, found := find(object, []string{"spec", "template", "spec", "containers"}); found {
			arguments = nil
			for _, argument := range containers.([]any)[0].(values)["args"].([]any) {
				arguments = append(arguments, strings.ReplaceAll(argument.(string), "$(POD_NAMESPACE)", "web"))
			}
		}
	}
	if caddyfile == "" || arguments == nil {
		t.Fatal("there is no controller")
	}
	return caddyfile, arguments
}

// storageBlock matches the storage in Secrets with its options.
var storageBlock = regexp.MustCompile(`storage kubernetes( \{[^}]*\})?`)

// checkProgram starts the controller without a cluster, and checks that the missing cluster is its only error.
func checkProgram(t *testing.T, program string, objects []values) {
	t.Helper()
	caddyfile, arguments := controller(t, objects)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	caddyfile = strings.ReplaceAll(caddyfile, "/run/caddy/", t.TempDir()+"/")
	caddyfile = storageBlock.ReplaceAllString(caddyfile, "storage file_system "+t.TempDir())
	if err := os.WriteFile(file, []byte(caddyfile), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"k8singress", "run", "--config", file}, arguments...)
	run := exec.CommandContext(t.Context(), program, append(arguments, "--kubeconfig=/there/is/none")...)
	run.Env = append(os.Environ(), "ZONE=a", "XDG_DATA_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	out, err := run.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "/there/is/none") ||
		strings.Contains(string(out), "adapting config") {
		t.Errorf("%v\n%s\n%s", err, out, caddyfile)
	}
}

// TestRefused checks that values which cannot work are rejected with a reason.
func TestRefused(t *testing.T) {
	var all []struct {
		Values values `json:"values"`
		Says   string `json:"says"`
	}
	readYAML(t, "testdata/refused.yaml", &all)
	for _, c := range all {
		if _, err := render(c.Values, install{}); err == nil || !strings.Contains(err.Error(), c.Says) {
			t.Errorf("%v: %v, want %q", c.Values, err, c.Says)
		}
	}
}

// TestNames checks that, without access to a cluster, a value decides whether the release keeps the names of the
// ingress-nginx chart.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		release string
		with    values
		want    string
	}{
		{"ingress-nginx", values{"nameOverride": "ingress-nginx"}, "ingress-nginx-controller"},
		{"edge", values{"nameOverride": "ingress-nginx"}, "edge-ingress-nginx-controller"},
		{"edge", values{"fullnameOverride": "front"}, "front-controller"},
		{"edge", nil, "edge-k8singress-controller"},
		{"k8singress", nil, "k8singress-controller"},
	} {
		r, err := render(c.with, install{name: c.release})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"Service", "Deployment", "ConfigMap", "PodDisruptionBudget"} {
			want := values{"kind": kind, "metadata": values{"name": c.want}}
			if !slices.ContainsFunc(r.objects(t), func(object values) bool { return has(object, want) }) {
				t.Errorf("release %s with %v has no %s %s", c.release, c.with, kind, c.want)
			}
		}
	}
}
