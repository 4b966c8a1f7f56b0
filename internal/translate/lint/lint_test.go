package lint_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/kinds"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/model/settings"
	"github.com/k8singress/k8singress/internal/model/snapshot"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/ingress"
	"github.com/k8singress/k8singress/internal/translate/lint"
)

// snapshotOf returns a snapshot with these objects.
func snapshotOf(objects ...kinds.Object) *snapshot.Snapshot {
	store := snapshot.NewStore()
	store.Apply(objects, nil)
	return store.Take()
}

// configMap returns the ConfigMap a/NAME. data are pairs of a key and a value.
func configMap(name string, data ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Data: map[string]string{}}
	for pair := range slices.Chunk(data, 2) {
		c.Data[pair[0]] = pair[1]
	}
	return c
}

// problemsOf prints the problems of all verdicts, one line each.
func problemsOf(verdicts []*report.Verdict) (lines []string) {
	for _, v := range verdicts {
		for _, p := range v.Problems {
			lines = append(lines, fmt.Sprintf("%s %s %s %s: %s", p.Severity, p.Reason, v.Object, p.Field, p.Message))
		}
	}
	return lines
}

// TestUnopenedPorts checks which ConfigMaps seem to define ports, and what their authors are told.
func TestUnopenedPorts(t *testing.T) {
	name := func(name string) ir.Name { return ir.Name{Namespace: "a", Name: name} }
	entry := []string{"5432", "a/db:5432"}
	for what, c := range map[string]struct {
		of      *corev1.ConfigMap
		options *settings.Config
		want    string
	}{
		"by its name": {configMap("tcp-services", entry...), &settings.Config{},
			"warning ConfigMapNotReferenced ConfigMap/a/tcp-services : these ports are not open, because no option " +
				"names this ConfigMap: add tcp_services a/tcp-services to the k8singress block of the Caddyfile"},
		"by its name, with other entries": {configMap("udp-services", "key", "value"), &settings.Config{},
			"warning ConfigMapNotReferenced ConfigMap/a/udp-services : these ports are not open, because no " +
				"option names this ConfigMap: add udp_services a/udp-services to the k8singress block of the " +
				"Caddyfile"},
		"by a part of its name": {configMap("my-udp", entry...), &settings.Config{},
			"warning ConfigMapNotReferenced ConfigMap/a/my-udp : these ports are not open, because no option names " +
				"this ConfigMap: add udp_services a/my-udp to the k8singress block of the Caddyfile"},
		"by its entries": {configMap("ports", entry...), &settings.Config{},
			"warning ConfigMapNotReferenced ConfigMap/a/ports : the entries look like TCP or UDP ports, and the " +
				"ports are not open, because no option names this ConfigMap: add tcp_services a/ports or " +
				"udp_services a/ports to the k8singress block of the Caddyfile"},
		"the option names another": {configMap("tcp-services", entry...), &settings.Config{TCPServices: name("ports")},
			"warning ConfigMapNotReferenced ConfigMap/a/tcp-services : these ports are not open, because the option " +
				"tcp_services names the ConfigMap a/ports: move the entries to that ConfigMap, or write tcp_services " +
				"a/tcp-services instead"},
		"the other option names another": {configMap("udp-services", entry...),
			&settings.Config{TCPServices: name("ports")},
			"warning ConfigMapNotReferenced ConfigMap/a/udp-services : these ports are not open, because no option " +
				"names this ConfigMap: add udp_services a/udp-services to the k8singress block of the Caddyfile"},
		"the option of TCP names it": {configMap("ports", entry...), &settings.Config{TCPServices: name("ports")}, ""},
		"the option of UDP names it": {configMap("ports", entry...), &settings.Config{UDPServices: name("ports")}, ""},
		"it holds the settings":      {configMap("ports", entry...), &settings.Config{ConfigMap: name("ports")}, ""},
		"empty":                      {configMap("tcp-services"), &settings.Config{}, ""},
		"other entries":              {configMap("other", "key", "value", "port", "a/db:5432"), &settings.Config{}, ""},
		"without a Caddyfile": {configMap("udp-services", entry...), nil,
			"info NotChecked ConfigMap/a/udp-services : not checked: set --config to a Caddyfile with the option " +
				"udp_services a/udp-services"},
		"without a Caddyfile, by its entries": {configMap("ports", entry...), nil,
			"info NotChecked ConfigMap/a/ports : not checked: set --config to a Caddyfile with the option " +
				"tcp_services or udp_services a/ports"},
	} {
		t.Run(what, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			if diff := cmp.Diff(want, problemsOf(lint.UnopenedPorts(snapshotOf(c.of), c.options))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithoutOptions checks which problems depend on options, and that the verdicts themselves do not change.
func TestWithoutOptions(t *testing.T) {
	ref := ir.Ref{Kind: "Ingress", Namespace: "a", Name: "web"}
	for _, c := range []struct {
		problem report.Problem
		want    string
	}{
		{report.Problem{Severity: report.Warning, Reason: report.AddressNotAllowed, Field: "f", Message: "m"},
			"info NotChecked Ingress/a/web f: not checked: set --config to a Caddyfile with the option reach_allow"},
		{report.Problem{Severity: report.Error, Reason: report.PortNotAllowed, Message: "m"},
			"info NotChecked Ingress/a/web : not checked: set --config to a Caddyfile with the option " +
				"service_tcp_ports or service_udp_ports"},
		{report.Problem{Severity: report.Warning, Reason: report.InvalidAnnotation, Message: ingress.PassthroughIsOff},
			"info NotChecked Ingress/a/web : not checked: set --config to a Caddyfile with the option ssl_passthrough"},
		{report.Problem{Severity: report.Error, Reason: report.AnnotationNotAllowed, Field: "f", Message: "m"},
			"info NotChecked Ingress/a/web f: not checked: set --config to a Caddyfile with the option configmap, " +
				"because this ConfigMap says whether the annotation is allowed"},
		{report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Field: "f",
			Message: annotations.CheckChains("chain", []string{"waf"}, nil).Error() + "; meanwhile"},
			"info NotChecked Ingress/a/web f: not checked: set --config to a Caddyfile with the option chain"},
		{report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Field: "f",
			Message: annotations.CheckChains("stream_chain", []string{"waf"}, nil).Error()},
			"info NotChecked Ingress/a/web f: not checked: set --config to a Caddyfile with the option stream_chain"},
		{report.Problem{Severity: report.Error, Reason: report.InvalidAnnotation, Field: "f", Message: "m"},
			"error InvalidAnnotation Ingress/a/web f: m"},
	} {
		other := report.Problem{Severity: report.Info, Reason: report.NoEndpoints, Message: "other"}
		of := []*report.Verdict{{Object: ref}, {Object: ref, Problems: []report.Problem{other, c.problem}}}
		before := problemsOf(of)
		want := []string{"info NoEndpoints Ingress/a/web : other", c.want}
		if diff := cmp.Diff(want, problemsOf(lint.WithoutOptions(of))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.problem.Reason, diff)
		}
		if diff := cmp.Diff(before, problemsOf(of)); diff != "" {
			t.Errorf("%s: the verdicts have changed:\n%s", c.problem.Reason, diff)
		}
	}
}

// TestPathTypes checks which paths ingress-nginx would reject because of their path type, and which ConfigMap disables
// the check.
func TestPathTypes(t *testing.T) {
	const exact, prefix, own = networkingv1.PathTypeExact, networkingv1.PathTypePrefix,
		networkingv1.PathTypeImplementationSpecific
	warning := func(pathType networkingv1.PathType) []string {
		return []string{"warning InvalidPath Ingress/a/web spec.rules[1].http.paths[0].path: ingress-nginx rejects " +
			"an Ingress with such a path and the pathType " + string(pathType) + " (key strict-validate-path-type), " +
			"but k8singress serves it: for a regular expression, write ImplementationSpecific"}
	}
	off := configMap("global", "strict-validate-path-type", "false")
	on := configMap("global", "strict-validate-path-type", "true")
	named := &settings.Config{ConfigMap: ir.Name{Namespace: "a", Name: "global"}}
	for name, c := range map[string]struct {
		path     string
		pathType networkingv1.PathType
		config   *corev1.ConfigMap
		options  *settings.Config
		want     []string
	}{
		"an expression":            {"/api/v[0-9]+", prefix, nil, named, warning(prefix)},
		"a space":                  {"/a b", exact, nil, named, warning(exact)},
		"a relative path":          {"api", prefix, nil, named, warning(prefix)},
		"a plain path":             {"/a-b_c.d/E9", prefix, nil, named, nil},
		"an empty path":            {"", prefix, nil, named, nil},
		"implementation-specific":  {"/api/v[0-9]+", own, nil, named, nil},
		"without a type":           {"/api/v[0-9]+", "", nil, named, nil},
		"off":                      {"/a b", exact, off, named, nil},
		"on":                       {"/a b", exact, on, named, warning(exact)},
		"off in another ConfigMap": {"/a b", exact, off, &settings.Config{}, warning(exact)},
		"off without a Caddyfile":  {"/a b", exact, off, nil, warning(exact)},
	} {
		t.Run(name, func(t *testing.T) {
			path := networkingv1.HTTPIngressPath{Path: c.path, PathType: &c.pathType}
			if c.pathType == "" {
				path.PathType = nil
			}
			o := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web"}}
			// A rule may have no paths.
			o.Spec.Rules = []networkingv1.IngressRule{{Host: "none.example"}, {}}
			o.Spec.Rules[1].HTTP = &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{path}}
			objects := []kinds.Object{o}
			if c.config != nil {
				objects = append(objects, c.config)
			}
			// Only Ingresses with a verdict belong to this controller.
			r := &report.Report{Verdicts: []*report.Verdict{
				{Object: ir.Ref{Kind: "ConfigMap", Namespace: "a", Name: "web"}}, {Object: snapshot.RefOf(o)},
			}}
			if diff := cmp.Diff(c.want, problemsOf(lint.PathTypes(snapshotOf(objects...), c.options, r))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := lint.PathTypes(snapshotOf(objects...), c.options, &report.Report{}); got != nil {
				t.Errorf("an Ingress of another controller gets %v", problemsOf(got))
			}
		})
	}
}
