package translate_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate"
)

// problemsOf returns the reason, field and message of each problem of an object. It returns nil if there is no verdict.
func problemsOf(r *report.Report, of ir.Ref) []string {
	v := r.Get(of)
	if v == nil {
		return nil
	}
	list := []string{}
	for _, p := range v.Problems {
		list = append(list, strings.Join([]string{string(p.Reason), p.Field, p.Message}, " "))
	}
	return list
}

func classRef(name string) ir.Ref { return ir.Ref{Kind: kinds.IngressClass, Name: name} }

// TestGlobalConfigMap checks that the translation takes up the ConfigMap when it is created, changed or deleted. An
// empty ConfigMap has the same effect as a missing one, except that a missing ConfigMap gets a verdict.
func TestGlobalConfigMap(t *testing.T) {
	store, translator := fill(2), translate.New()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "global"}}
	ref := snapshot.RefOf(object)
	before, verdicts := translator.Translate(store.Take(), options)
	if got := problemsOf(verdicts, ref); len(got) != 1 ||
		!strings.Contains(got[0], "ConfigMapNotFound  the ConfigMap a/global of the option configmap does not exist") {
		t.Errorf("without the ConfigMap: %q", got)
	}
	if before.Global == nil {
		t.Fatal("there are no global options")
	}
	store.Set(object)
	after, verdicts := translator.Translate(store.Take(), options)
	if got := problemsOf(verdicts, ref); got == nil || len(got) > 0 {
		t.Errorf("with the ConfigMap: %q", got)
	}
	if after.Global != before.Global || after.VirtualHosts[0] != before.VirtualHosts[0] ||
		after.Backends[1] != before.Backends[1] {
		t.Error("an empty ConfigMap changes something")
	}
	store.Delete(object)
	if _, verdicts = translator.Translate(store.Take(), options); len(problemsOf(verdicts, ref)) != 1 {
		t.Errorf("without the ConfigMap, again: %q", problemsOf(verdicts, ref))
	}
	none := options
	none.ConfigMap = ir.Name{}
	if _, verdicts = translator.Translate(store.Take(), none); problemsOf(verdicts, ref) != nil {
		t.Errorf("without the option: %q", problemsOf(verdicts, ref))
	}
}

// TestParametersOfAClass checks which ConfigMap the parameters of a class select, and the problems with invalid
// parameters.
func TestParametersOfAClass(t *testing.T) {
	type reference = networkingv1.IngressClassParametersReference
	cluster, namespace, odd := "Cluster", "Namespace", "Planet"
	global := ir.Name{Namespace: "b", Name: "global"}
	for _, test := range []struct {
		name      string
		reference *reference
		// global is the value of the option configmap.
		global ir.Name
		want   string
		// open means that the Ingresses of the class are served, and do not return 503.
		open bool
	}{
		{"none", nil, ir.Name{Namespace: "a", Name: "global"}, "", true},
		{"namespace", &reference{Kind: "ConfigMap", Name: "class", Scope: &namespace, Namespace: new("b")}, ir.Name{},
			"accepted", true},
		{
			"an empty group", &reference{APIGroup: new(""), Kind: "ConfigMap", Name: "class", Scope: &namespace,
				Namespace: new("b")},
			ir.Name{},
			"accepted", true,
		},
		{"cluster, beside the global one", &reference{Kind: "ConfigMap", Name: "class", Scope: &cluster}, global,
			"accepted", true},
		{"no scope is the cluster", &reference{Kind: "ConfigMap", Name: "class"}, global, "accepted", true},
		{"cluster, without the global one", &reference{Kind: "ConfigMap", Name: "class", Scope: &cluster}, ir.Name{},
			"spec.parameters.scope", false},
		{
			"cluster, in another namespace", &reference{Kind: "ConfigMap", Name: "class"},
			ir.Name{Namespace: "a", Name: "global"},
			"spec.parameters.name the ConfigMap a/class does not exist", false,
		},
		{
			"missing", &reference{Kind: "ConfigMap", Name: "gone", Scope: &namespace, Namespace: new("b")},
			ir.Name{},
			"spec.parameters.name the ConfigMap b/gone does not exist", false,
		},
		{"no namespace", &reference{Kind: "ConfigMap", Name: "class", Scope: &namespace}, global,
			"spec.parameters.namespace", false},
		{"another kind", &reference{Kind: "Secret", Name: "class", Scope: &namespace, Namespace: new("b")}, ir.Name{},
			"spec.parameters.kind", false},
		{"another group", &reference{APIGroup: new("example.com"), Kind: "ConfigMap", Name: "class"}, global,
			"spec.parameters.kind", false},
		{
			"of another controller", &reference{APIGroup: new("example.com"), Kind: "Parameters", Name: "class"},
			global,
			"spec.parameters.kind", true,
		},
		{"no such scope", &reference{Kind: "ConfigMap", Name: "class", Scope: &odd}, global,
			"spec.parameters.scope", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := fill(1)
			class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}
			class.Spec.Controller, class.Spec.Parameters = "k8s.io/ingress-nginx", test.reference
			store.Set(class)
			store.Set(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "class"}})
			o := options
			o.ConfigMap = test.global
			config, verdicts := translate.Translate(store.Take(), o)
			got := problemsOf(verdicts, classRef("nginx"))
			switch {
			case test.want == "" && got != nil, test.want == "accepted" && (got == nil || len(got) > 0),
				test.want != "" && test.want != "accepted" &&
					(len(got) != 1 || !strings.Contains(got[0], "InvalidParameters "+test.want)):
				t.Errorf("said is %q, want %q", got, test.want)
			}
			filters := config.VirtualHosts[0].Routes[0].Filters
			if open := !slices.Contains(filters, ir.Filter(ir.DirectResponse{Status: 503})); open != test.open {
				t.Errorf("the Ingresses of the class are served: %t", open)
			}
			if told := problemsOf(verdicts, ir.Ref{Kind: kinds.Ingress, Namespace: "a",
				Name: "i0"}); test.open != (len(told) == 0) {
				t.Errorf("of the Ingress is said %q", told)
			}
		})
	}
}

// TestParametersComeAndGo checks that the Ingresses of a class return 503 while the ConfigMap of the class is missing,
// and that other Ingresses are not affected.
func TestParametersComeAndGo(t *testing.T) {
	store, translator := fill(1), translate.New()
	class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}}
	class.Spec.Controller = "k8s.io/ingress-nginx"
	class.Spec.Parameters = &networkingv1.IngressClassParametersReference{
		Kind: "ConfigMap", Name: "class", Scope: new("Namespace"), Namespace: new("b"),
	}
	store.Set(class)
	bystander := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	bystander.Spec.Controller = class.Spec.Controller
	store.Set(bystander)
	other := numbered(1, "/")
	other.Spec.IngressClassName = &bystander.Name
	store.Set(other)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "class"}}
	unnamed := class.DeepCopy()
	unnamed.Spec.Parameters = nil
	for i, step := range []struct {
		change func()
		closed int
	}{
		{func() {}, 1},
		{func() { store.Set(object) }, 0},
		{func() { store.Delete(object) }, 1},
		{func() { store.Set(unnamed) }, 0},
		{func() { store.Set(class) }, 1},
	} {
		step.change()
		s := store.Take()
		config, verdicts := translator.Translate(s, options)
		closed := 0
		for _, h := range config.VirtualHosts {
			closed += len(h.Routes[0].Filters)
		}
		if len(config.VirtualHosts) != 2 || closed != step.closed {
			t.Errorf("step %d: %d of %d hosts are closed", i, closed, len(config.VirtualHosts))
		}
		if _, anew := translate.Translate(s, options); !reflect.DeepEqual(anew, verdicts) {
			t.Errorf("step %d: the verdicts are others without a memory", i)
		}
	}
}

// TestTwoDefaultClasses checks that, if several classes are marked as the default, each of our classes among them gets
// a warning, and that an Ingress without a class is still served.
func TestTwoDefaultClasses(t *testing.T) {
	store := fill(1)
	for second, name := range []string{"old", "new", "theirs"} {
		class := &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name,
			CreationTimestamp: metav1.NewTime(time.Unix(int64(second), 0))}}
		class.Spec.Controller = "k8s.io/ingress-nginx"
		if name == "theirs" {
			class.Spec.Controller, class.CreationTimestamp = "example.com/other", metav1.NewTime(time.Unix(0, 0))
		}
		class.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		store.Set(class)
	}
	bare := numbered(0, "/")
	bare.Spec.IngressClassName = nil
	store.Set(bare)
	config, verdicts := translate.Translate(store.Take(), options)
	for name, others := range map[string]string{"old": "(new, theirs)", "new": "(old, theirs)"} {
		got := problemsOf(verdicts, classRef(name))
		if len(got) != 1 || !strings.Contains(got[0], others) || !strings.Contains(got[0], "the newest one, new.") {
			t.Errorf("of %s is said %q", name, got)
		}
	}
	for _, name := range []string{"theirs", "nginx"} {
		if got := problemsOf(verdicts, classRef(name)); got != nil {
			t.Errorf("of %s is said %q", name, got)
		}
	}
	if len(config.VirtualHosts) != 1 {
		t.Error("an Ingress without class is not served")
	}
}

// TestNamespaceSelector checks that the labels of the namespace decide whether an Ingress is served.
func TestNamespaceSelector(t *testing.T) {
	store, translator := fill(1), translate.New()
	served := func() bool {
		t.Helper()
		config, verdicts := translator.Translate(store.Take(), narrow)
		ours := verdicts.Get(ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "i0"}) != nil
		if ours != (len(config.VirtualHosts) == 1) {
			t.Error("what is said of the Ingress is not what is served")
		}
		return ours
	}
	labelled := func(team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": team}}}
	}
	got := []bool{served()}
	store.Set(labelled("shop"))
	got = append(got, served())
	store.Set(labelled("other"))
	got = append(got, served())
	store.Set(labelled("shop"))
	got = append(got, served())
	store.Delete(labelled("shop"))
	got = append(got, served())
	if want := []bool{false, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("served is %v, want %v", got, want)
	}
}

// TestClassIsTakenAway checks that an Ingress is served only while its class is ours. We must not write its status
// while the class belongs to another controller.
func TestClassIsTakenAway(t *testing.T) {
	store, translator := fill(1), translate.New()
	class := func(controller string) *networkingv1.IngressClass {
		return &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: controller},
		}
	}
	for i, test := range []struct {
		change func()
		served bool
		// foreign means that the Ingress is not ours, but gets a verdict for its author.
		foreign bool
	}{
		{func() {}, true, false},
		{func() { store.Delete(class("")) }, false, true},
		{func() { store.Set(class("k8s.io/ingress-nginx")) }, true, false},
		{func() { store.Set(class("example.com/other")) }, false, false},
		{func() { store.Set(class("k8s.io/ingress-nginx")) }, true, false},
	} {
		test.change()
		config, verdicts := translator.Translate(store.Take(), options)
		v := verdicts.Get(ir.Ref{Kind: kinds.Ingress, Namespace: "a", Name: "i0"})
		ours, foreign := v != nil && len(v.Parents) > 0, v != nil && len(v.Parents) == 0
		if (len(config.VirtualHosts) == 1) != test.served || ours != test.served || foreign != test.foreign {
			t.Errorf("step %d: %d hosts, verdict %+v", i, len(config.VirtualHosts), v)
		}
	}
}
