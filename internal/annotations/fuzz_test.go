package annotations_test

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/annotations"
	"github.com/k8singress/k8singress/internal/ir"
	"github.com/k8singress/k8singress/internal/report"
)

const (
	variable = "K8SINGRESS_FUZZ"
	expanded = "a placeholder was expanded"
)

// placeholder is what Caddy, or a Caddyfile, would put something else in place of.
var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// FuzzAnnotations holds that a value is either taken as it stands, placeholders included, or refused with a reason.
func FuzzAnnotations(f *testing.F) {
	f.Setenv(variable, expanded)
	for _, value := range []string{
		"", "/", "/$1", "/{env." + variable + "}", "/{$" + variable + "}", "/{file./etc/hostname}", "/{http.request.host}/$1",
		"/\\{env.HOME\\}", "true", "10m", "https://a.example/{uri}",
		"/{{env \"HOME\"}}", "/${HOME}", "/$(HOME)", "/%{HOME}", "/\x00", "/\xff", "/a\nb", "/a b", "/\u2028",
	} {
		f.Add("rewrite-target", value, "/a/(.*)")
	}
	for i := range annotations.Table {
		row := &annotations.Table[i]
		f.Add(row.Name, row.Example, "/a")
		f.Add(row.Name, row.Example+"{env."+variable+"}", row.Example)
	}
	f.Add("rewrite-targte", "/", "/")
	f.Add("server-snippet", "return 200;", "/")
	f.Add("", "", "")
	f.Add("{env."+variable+"}", "{env."+variable+"}", "{env."+variable+"}")

	f.Fuzz(func(t *testing.T, name, value, path string) {
		settings, problems := annotations.Parse(annotations.Settings{}, map[string]string{annotations.Prefix + name: value})
		checkProblems(t, name, problems)
		filters := settings.Filters(path)
		literals := strings.Join(append(texts(reflect.ValueOf(settings)), texts(reflect.ValueOf(filters))...), "\n")
		switch {
		case len(problems) > 0:
			if !reflect.DeepEqual(settings, &annotations.Settings{}) {
				t.Errorf("refused with %v, and yet there is %+v", problems, settings)
			}
		case !supported(name):
			t.Error("an annotation that nobody knows, and no word of it")
		case !plain(value):
			t.Errorf("the value %q is taken", value)
		}
		if strings.Contains(literals, expanded) && !strings.Contains(value+path, expanded) {
			t.Errorf("something was put in place of a placeholder: %q", literals)
		}
		for _, p := range placeholder.FindAllString(value, -1) {
			if len(problems) == 0 && !strings.Contains(literals, p) {
				t.Errorf("the placeholder %s is not there as it stands: %q", p, literals)
			}
		}
		checkRewrite(t, name, value, path, problems)
		checkNeighbour(t, name, value)
	})
}

// checkProblems holds that there is at most one problem, which says where and what.
func checkProblems(t *testing.T, name string, problems []report.Problem) {
	t.Helper()
	if len(problems) > 1 {
		t.Errorf("one annotation has %d problems: %v", len(problems), problems)
	}
	for _, p := range problems {
		if p.Severity == "" || p.Reason == "" || p.Message == "" || p.Field != "metadata.annotations["+annotations.Prefix+name+"]" {
			t.Errorf("a problem says too little: %+v", p)
		}
		if p.Severity != report.Error && supported(name) {
			t.Errorf("a value is refused, and the object accepted: %+v", p)
		}
	}
}

// checkRewrite holds that the target of a rewrite is the value, to the byte.
func checkRewrite(t *testing.T, name, value, path string, problems []report.Problem) {
	t.Helper()
	if name != "rewrite-target" || len(problems) > 0 {
		return
	}
	settings, _ := annotations.Parse(annotations.Settings{}, map[string]string{rewriteTarget: value})
	var want []ir.Filter
	if value != path {
		want = []ir.Filter{ir.URLRewrite{Target: value}}
	}
	if diff := cmp.Diff(want, settings.Filters(path)); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
}

// checkNeighbour holds that an annotation has no influence on another one.
func checkNeighbour(t *testing.T, name, value string) {
	t.Helper()
	if name == "rewrite-target" {
		return
	}
	settings, _ := annotations.Parse(annotations.Settings{}, map[string]string{annotations.Prefix + name: value, rewriteTarget: "/good"})
	if settings.RewriteTarget != "/good" {
		t.Errorf("the annotation beside it has become %q", settings.RewriteTarget)
	}
}

func supported(name string) bool {
	return slices.ContainsFunc(annotations.Table, func(row annotations.Annotation) bool { return row.Name == name })
}

func plain(value string) bool {
	return utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}

// texts returns all strings that a value holds, however deep.
func texts(v reflect.Value) []string {
	var all []string
	switch v.Kind() {
	case reflect.String:
		all = append(all, v.String())
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			all = texts(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			all = append(all, texts(v.Field(i))...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			all = append(all, texts(v.Index(i))...)
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			all = append(append(all, texts(entries.Key())...), texts(entries.Value())...)
		}
	default:
	}
	return all
}
