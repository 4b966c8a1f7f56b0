package admission_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate"
	"github.com/k8singress/k8singress/internal/translate/admission"
	"github.com/k8singress/k8singress/internal/translate/ownership"
)

var update = flag.Bool("update", false, "rewrite the answers in testdata")

// reviewed is one file in testdata: objects that are stored, and reviews of other objects.
type reviewed struct {
	// Options are names of options of the administrator.
	Options []string               `json:"options"`
	Stored  []runtime.RawExtension `json:"stored"`
	// Reviews maps descriptions to the versions of an Ingress.
	Reviews map[string]struct {
		Old *networkingv1.Ingress `json:"old"`
		New *networkingv1.Ingress `json:"new"`
	} `json:"reviews"`
}

var setters = map[string]func(*translate.Options){
	"disable_catch_all":           func(o *translate.Options) { o.Ingress.DisableCatchAll = true },
	"snippets ignore":             func(o *translate.Options) { o.Ingress.Defaults.IgnoreSnippets = true },
	"host_ownership namespace":    func(o *translate.Options) { o.Ownership = ownership.Policy{Exclusive: true} },
	"namespaces shop":             func(o *translate.Options) { o.Namespaces = []string{"shop"} },
	"manifests":                   func(o *translate.Options) { o.Ingress.Folder = true },
	"watch_ingress_without_class": func(o *translate.Options) { o.Ingress.WatchWithoutClass = true },
}

func options() translate.Options {
	o := translate.Options{Views: true, ConfigMap: ir.Name{Namespace: "ingress", Name: "global"}}
	o.Ingress.ControllerName, o.Ingress.ClassName = settings.DefaultControllerName, settings.DefaultIngressClass
	return o
}

// viewOf returns a view of stored objects.
func viewOf(o translate.Options, objects ...kinds.Object) *translate.View {
	store := snapshot.NewStore()
	store.Apply(objects, nil)
	s, t := store.Take(), translate.New()
	t.Translate(s, o)
	return t.View(s)
}

func never() bool { return false }

// TestReview compares the answers to the reviews in testdata with the expected answers.
func TestReview(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			var c reviewed
			read(t, file, &c)
			o := options()
			for _, name := range c.Options {
				setters[name](&o)
			}
			v, text := viewOf(o, decoded(t, c.Stored)...), ""
			for _, name := range slices.Sorted(maps.Keys(c.Reviews)) {
				r := c.Reviews[name]
				text += "== " + name + "\n" + show(admission.Review(v, r.New, r.Old, never))
			}
			fixture.Generated(t, strings.TrimSuffix(file, ".yaml")+".answers", text, *update)
		})
	}
}

func show(a *admission.Answer) string {
	text := "allowed\n"
	if a.Refusal != "" {
		text = "refused: " + a.Refusal + "\n"
	}
	for _, w := range a.Warnings {
		text += "warning: " + w + "\n"
	}
	return text
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.UnmarshalStrict(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func decoded(t *testing.T, all []runtime.RawExtension) (objects []kinds.Object) {
	t.Helper()
	for _, raw := range all {
		var kind struct {
			Kind string `json:"kind"`
		}
		if err := yaml.Unmarshal(raw.Raw, &kind); err != nil {
			t.Fatal(err)
		}
		row, ok := kinds.ByName(kind.Kind)
		if !ok {
			t.Fatalf("the kind %q is unknown", kind.Kind)
		}
		object := row.New()
		if err := yaml.UnmarshalStrict(raw.Raw, object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

func class() *networkingv1.IngressClass {
	c := &networkingv1.IngressClass{}
	c.Name, c.Spec.Controller = "nginx", settings.DefaultControllerName
	return c
}

// ingress returns an Ingress with one path for each host.
func ingress(namespace, name string, hosts ...string) *networkingv1.Ingress {
	class, prefix := "nginx", networkingv1.PathTypePrefix
	web := networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
		Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80},
	}}
	o := &networkingv1.Ingress{}
	o.Namespace, o.Name, o.Spec.IngressClassName = namespace, name, &class
	for _, host := range hosts {
		o.Spec.Rules = append(o.Spec.Rules, networkingv1.IngressRule{Host: host,
			IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: &prefix, Backend: web}}}}})
	}
	return o
}

// TestBounds checks that the texts stay within the limits of the API server, whatever the object contains.
func TestBounds(t *testing.T) {
	o := ingress("shop", "web", "a.example")
	o.Annotations = map[string]string{}
	for i := range 100 {
		o.Annotations[fmt.Sprintf("nginx.ingress.kubernetes.io/unknown-%d-%s", i, strings.Repeat("é", i))] = "\n\x00"
		o.Annotations[fmt.Sprintf("nginx.ingress.kubernetes.io/%d", i)] = "load_module"
	}
	for name := range strings.FieldsSeq(`proxy-read-timeout proxy-send-timeout proxy-body-size limit-rps limit-rpm
		proxy-connect-timeout proxy-buffer-size limit-connections whitelist-source-range app-root`) {
		o.Annotations["nginx.ingress.kubernetes.io/"+name] = strings.Repeat("\u202e\x00<script>é", 500)
	}
	a := admission.Review(viewOf(options(), class()), o, nil, never)
	if lines := strings.Split(a.Refusal, "\n"); len(lines) != 10 || lines[9] != "(problems that are not listed: 1)" ||
		len(a.Refusal) > 10<<10 || !utf8.ValidString(a.Refusal) || strings.Contains(a.Refusal, "\x00") {
		t.Errorf("the refusal has %d lines and %d bytes: %q", len(lines), len(a.Refusal), a.Refusal)
	}
	size := 0
	for _, w := range a.Warnings {
		if size += len(w); len(w) > 256 || !utf8.ValidString(w) || strings.ContainsAny(w, "\x00\n") {
			t.Errorf("a warning is %q", w)
		}
	}
	if last := a.Warnings[len(a.Warnings)-1]; size > 4096 || !strings.HasSuffix(last, "see the Events of the Ingress") {
		t.Errorf("the warnings have %d bytes, the last one is %q", size, last)
	}
}

// TestStops checks that a review of many hosts ends as soon as its time is over.
func TestStops(t *testing.T) {
	steps := 0
	three := ingress("shop", "web", "a.example", "b.example", "c.example")
	a := admission.Review(viewOf(options(), class()), three, nil, func() bool {
		steps++
		return steps == 3
	})
	if a != nil || steps != 3 {
		t.Errorf("after %d steps: %+v", steps, a)
	}
}

// TestNothingIsKept checks that a review of an object that is never stored does not change later reviews.
func TestNothingIsKept(t *testing.T) {
	v := viewOf(options(), class())
	first := ingress("shop", "first", "a.example")
	if a := admission.Review(v, first, nil, never); a.Refusal != "" {
		t.Fatal(a.Refusal)
	}
	if a := admission.Review(v, ingress("other", "second", "a.example"), nil, never); a.Refusal != "" {
		t.Error(a.Refusal)
	}
	stored := viewOf(options(), class(), first)
	if a := admission.Review(stored, ingress("other", "second", "a.example"), nil, never); a.Refusal == "" {
		t.Error("the path of a stored Ingress is free")
	}
}

// BenchmarkManyProblems reviews an Ingress with the maximum number of annotations, which all are unknown, and many
// paths whose Service does not exist. The time must grow linearly with their number.
func BenchmarkManyProblems(b *testing.B) {
	v := viewOf(options(), class())
	for _, n := range []int{2_000, 8_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := ingress("shop", "web", "a.example")
			paths := &o.Spec.Rules[0].HTTP.Paths
			o.Annotations = map[string]string{}
			for i := range n {
				o.Annotations[fmt.Sprintf("nginx.ingress.kubernetes.io/%d", i)] = ""
				path := (*paths)[0]
				path.Path = fmt.Sprintf("/%d", i)
				*paths = append(*paths, path)
			}
			for b.Loop() {
				admission.Review(v, o, nil, never)
			}
		})
	}
}

// BenchmarkReview reviews an Ingress while 10,000 others are stored.
func BenchmarkReview(b *testing.B) {
	objects := []kinds.Object{class()}
	for i := range 10_000 {
		objects = append(objects, ingress(fmt.Sprintf("ns-%d", i%100), fmt.Sprintf("web-%d", i),
			fmt.Sprintf("host-%d.example", i)))
	}
	v := viewOf(options(), objects...)
	for name, host := range map[string]string{
		"new": "new.example", "taken": "host-7.example", "wildcard": "*.example",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				admission.Review(v, ingress("shop", "web", host), nil, never)
			}
		})
	}
}
