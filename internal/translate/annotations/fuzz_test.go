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

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/tests/fixture"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// all allows all annotations.
var all = annotations.Settings{Gate: annotations.Gate{Level: annotations.RiskCritical, Snippets: true}}

const (
	variable = "K8SINGRESS_FUZZ"
	expanded = "a placeholder was expanded"
)

// placeholder matches text that Caddy or a Caddyfile would replace.
var placeholder = regexp.MustCompile(`\{[^{}]+\}`)

// FuzzAnnotations checks that each value is either used unchanged, including placeholders, or rejected with a reason.
func FuzzAnnotations(f *testing.F) {
	f.Setenv(variable, expanded)
	for _, value := range []string{
		"", "/", "/$1", "/{env." + variable + "}", "/{$" + variable + "}", "/{file./etc/hostname}",
		"/{http.request.host}/$1",
		"/\\{env.HOME\\}", "true", "10m", "https://a.example/{uri}",
		"/{{env \"HOME\"}}", "/${HOME}", "/$(HOME)", "/%{HOME}", "/\x00", "/\xff", "/a\nb", "/a b", "/\u2028",
	} {
		f.Add("rewrite-target", value, "/a/(.*)")
	}
	for i := range annotations.Table {
		row := &annotations.Table[i]
		f.Add(annotations.Key(row.Name), row.Example, "/a")
		f.Add(annotations.Key(row.Name), row.Example+"{env."+variable+"}", row.Example)
	}
	f.Add(rewriteTarget[:len(rewriteTarget)-1], "/", "/")
	for _, name := range []string{"server-snippet", "auth-type", "", "{env." + variable + "}", "chains"} {
		f.Add(annotations.Prefix+name, "{env."+variable+"}", "/")
		f.Add(annotations.OwnPrefix+name, "{env."+variable+"}", "/")
	}
	f.Fuzz(fuzzOne)
}

// fuzzOne parses a single annotation.
func fuzzOne(t *testing.T, key, value, path string) {
	if !strings.HasPrefix(key, annotations.Prefix) && !strings.HasPrefix(key, annotations.OwnPrefix) {
		key = annotations.Prefix + key
	}
	settings, problems := annotations.Parse(all, map[string]string{key: value})
	checkProblems(t, key, problems)
	row := rowOf(key)
	i := slices.IndexFunc(problems, func(p report.Problem) bool { return p.Severity == report.Error })
	taken := row != nil && i < 0
	filters := settings.Filters(path)
	literals := strings.Join(append(texts(reflect.ValueOf(settings)), texts(reflect.ValueOf(filters))...), "\n")
	switch {
	case !taken:
		var left annotations.Settings
		if row != nil {
			left = fixture.Refused(row, value, problems[i].Message)
		}
		left.Gate, left.Asked.Snippets.Server.Reason = all.Gate, settings.Asked.Snippets.Server.Reason
		want, _ := annotations.Parse(left, nil)
		if diff := cmp.Diff(want, settings); diff != "" {
			t.Errorf("%v, and the value leaves other settings than OnError of its row (-want +got):\n%s", problems,
				diff)
		}
	case row.Ignored == "" && !plain(row, value):
		t.Errorf("the value %q is taken", value)
	}
	if row == nil && len(problems) == 0 {
		t.Error("an annotation that nobody knows, and no word of it")
	}
	if strings.Contains(literals, expanded) && !strings.Contains(value+path, expanded) {
		t.Errorf("something was put in place of a placeholder: %q", literals)
	}
	if taken && row.Ignored == "" {
		checkPlaceholders(t, value, literals)
	}
	checkRewrite(t, key, value, path, problems)
	checkNeighbour(t, key, value)
}

// checkPlaceholders checks that the settings contain each placeholder of the value unchanged.
func checkPlaceholders(t *testing.T, value, literals string) {
	t.Helper()
	for _, p := range placeholder.FindAllString(value, -1) {
		if !strings.Contains(literals, p) {
			t.Errorf("the placeholder %s is not there as it stands: %q", p, literals)
		}
	}
}

// checkProblems checks that each problem is complete, and that a rejected value causes an error.
func checkProblems(t *testing.T, key string, problems []report.Problem) {
	t.Helper()
	if len(problems) > 2 || len(problems) == 2 && problems[0].Severity == report.Error {
		t.Errorf("one annotation has %d problems: %v", len(problems), problems)
	}
	for _, p := range problems {
		if p.Severity == "" || p.Reason == "" || p.Message == "" || p.Field != "metadata.annotations["+key+"]" {
			t.Errorf("a problem says too little: %+v", p)
		}
	}
}

// FuzzPairs checks that the effect of two annotations does not depend on which of them is in the defaults.
func FuzzPairs(f *testing.F) {
	for i := range annotations.Table {
		for j := range annotations.Table {
			if a, b := &annotations.Table[i], &annotations.Table[j]; i != j && a.Ignored == "" && b.Ignored == "" {
				f.Add(annotations.Key(a.Name), a.Example, annotations.Key(b.Name), b.Example)
			}
		}
	}
	f.Fuzz(func(t *testing.T, key1, value1, key2, value2 string) {
		if key1 == key2 {
			return
		}
		first, _ := annotations.Parse(all, map[string]string{key1: value1})
		layered, _ := annotations.Parse(*first, map[string]string{key2: value2})
		together, _ := annotations.Parse(all, map[string]string{key1: value1, key2: value2})
		if diff := cmp.Diff(together, layered); diff != "" {
			t.Errorf("together and one after the other (-together +layered):\n%s", diff)
		}
	})
}

// checkRewrite checks that the target of a rewrite has the same bytes as the value.
func checkRewrite(t *testing.T, key, value, path string, problems []report.Problem) {
	t.Helper()
	if key != rewriteTarget || len(problems) > 0 {
		return
	}
	settings, _ := annotations.Parse(annotations.Settings{}, map[string]string{rewriteTarget: value})
	var want []ir.Filter
	if value != path {
		want = []ir.Filter{ir.URLRewrite{Target: value}}
		if slices.ContainsFunc([]string{"http://", "https://", "$scheme"},
			func(p string) bool { return strings.HasPrefix(value, p) }) {
			want = []ir.Filter{ir.RewriteRedirect{Target: value}}
		}
	}
	if diff := cmp.Diff(want, settings.Filters(path)); diff != "" {
		t.Errorf("filters (-want +got):\n%s", diff)
	}
}

// checkNeighbour checks that an annotation does not affect another one.
func checkNeighbour(t *testing.T, key, value string) {
	t.Helper()
	if key == rewriteTarget {
		return
	}
	settings, _ := annotations.Parse(all, map[string]string{key: value, rewriteTarget: "/good"})
	if settings.RewriteTarget != "/good" {
		t.Errorf("the annotation beside it has become %q", settings.RewriteTarget)
	}
}

// rowOf returns the row of an annotation, or nil.
func rowOf(key string) *annotations.Annotation {
	for i := range annotations.Table {
		if annotations.Key(annotations.Table[i].Name) == key {
			return &annotations.Table[i]
		}
	}
	return nil
}

// plain reports whether a value that row accepts is plain text: on one line, unless row allows several lines.
func plain(row *annotations.Annotation, value string) bool {
	return row.Lines || utf8.ValidString(value) && !strings.ContainsFunc(value, unicode.IsControl)
}

// texts returns all strings in a value, at any depth.
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
