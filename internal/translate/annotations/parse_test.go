package annotations_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

const rewriteTarget = annotations.Prefix + "rewrite-target"

func TestUnknown(t *testing.T) {
	for _, test := range []struct{ name, annotation, message string }{
		{"known and not supported", "modsecurity-transaction-id",
			"modsecurity-transaction-id of ingress-nginx is not supported yet, and has no effect"},
		{"a letter too few", "rewrite-targt", "did you mean rewrite-target?"},
		{"a letter too many", "rewritee-target", "did you mean rewrite-target?"},
		{"another letter", "rewrite_target", "did you mean rewrite-target?"},
		{"two letters swapped", "proxy-body-zise", "did you mean proxy-body-size?"},
		{"the nearest of two", "session-cookie-pat", "did you mean session-cookie-path?"},
		{"upper case", "Canary", "did you mean canary?"},
		{"a key of the ConfigMap", "location-snippet", "it is a key of the ConfigMap; the snippets of an Ingress are"},
		{"another key of the ConfigMap", "http-snippet", "it is a key of the ConfigMap"},
		{"a snippet", "configuration-snipet", "did you mean configuration-snippet?"},
		{"short, and one letter off", "atisfy", "did you mean satisfy?"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := only(t, annotations.Prefix+test.annotation, "x")
			if p.Severity != report.Warning || p.Reason != report.UnknownAnnotation ||
				!strings.Contains(p.Message, test.message) {
				t.Errorf("got %v, want a warning with %q", p, test.message)
			}
		})
	}
}

// TestUnknownWithoutSuggestion checks that the problem with an unknown name suggests no annotation if none has a
// similar name. A wrong suggestion would be worse than no suggestion.
func TestUnknownWithoutSuggestion(t *testing.T) {
	for _, name := range []string{"", "x", "auth", "completely-different", strings.Repeat("rewrite-target", 1000),
		"ürwert", "{env.HOME}"} {
		p := only(t, annotations.Prefix+name, "x")
		if p.Reason != report.UnknownAnnotation || strings.Contains(p.Message, "did you mean") {
			t.Errorf("%.40q: got %v", name, p)
		}
	}
}

// TestForeign checks that annotations of other controllers are ignored.
func TestForeign(t *testing.T) {
	settings, problems := annotations.Parse(annotations.Settings{}, map[string]string{
		"rewrite-target": "/", "ingress.kubernetes.io/rewrite-target": "/", "nginx.org/rewrite-target": "/",
		"kubernetes.io/ingress.class": "nginx", "nginx.ingress.kubernetes.io": "/", "": "/",
	})
	if len(problems) > 0 || !reflect.DeepEqual(settings, &annotations.Settings{}) {
		t.Errorf("got %+v and %v", settings, problems)
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name, value string
		reason      report.Reason
	}{
		{"empty", "", report.InvalidAnnotation},
		{"space", "/a b", report.InvalidAnnotation},
		{"tab", "/a\tb", report.InvalidAnnotation},
		{"line feed", "/a\nb", report.InvalidAnnotation},
		{"NUL", "/a\x00", report.InvalidAnnotation},
		{"next line", "/a\u0085b", report.InvalidAnnotation},
		{"line separator", "/a\u2028b", report.InvalidAnnotation},
		{"not UTF-8", "/a\xff", report.InvalidAnnotation},
		{"URL without a host", "http:///x", report.InvalidAnnotation},
		{"URL with a placeholder", "https://{http.request.host}/", report.InvalidAnnotation},
		{"scheme variable alone", "$scheme", report.InvalidAnnotation},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := only(t, rewriteTarget, test.value)
			if p.Severity != report.Error || p.Reason != test.reason || p.Message == "" {
				t.Errorf("got %v, want an error with reason %s", p, test.reason)
			}
		})
	}
}

// TestRefusedLeavesOthers checks that a valid annotation takes effect although other annotations of the object are
// unknown, and that the problems name the unknown annotations.
func TestRefusedLeavesOthers(t *testing.T) {
	settings, problems := annotations.Parse(annotations.Settings{}, map[string]string{
		rewriteTarget: "/$1", annotations.Prefix + "b": "", annotations.Prefix + "a": "", "other/a": "",
	})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	want := []string{"metadata.annotations[" + annotations.Prefix + "a]",
		"metadata.annotations[" + annotations.Prefix + "b]"}
	if diff := cmp.Diff(want, fields); diff != "" || settings.RewriteTarget != "/$1" {
		t.Errorf("got the target %q and (-want +got)\n%s", settings.RewriteTarget, diff)
	}
}

func TestRewrite(t *testing.T) {
	for _, test := range []struct {
		name, target, path string
		want               []ir.Filter
	}{
		{"no target", "", "/a", nil},
		{"target", "/b", "/a", []ir.Filter{ir.URLRewrite{Target: "/b"}}},
		{"group", "/$2", "/a(/|$)(.*)", []ir.Filter{ir.URLRewrite{Target: "/$2"}}},
		{"equal to the path", "/a", "/a", nil},
		{"without slash", "b", "/a", []ir.Filter{ir.URLRewrite{Target: "b"}}},
		{"URL", "https://example.com/$1", "/a(.*)", []ir.Filter{ir.RewriteRedirect{Target: "https://example.com/$1"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			all := map[string]string{rewriteTarget: test.target}
			if test.target == "" {
				all = nil
			}
			settings, problems := annotations.Parse(annotations.Settings{}, all)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(test.want, settings.Filters(test.path)); diff != "" {
				t.Errorf("filters (-want +got):\n%s", diff)
			}
			if got := settings.Regex(test.path); got != (test.want != nil) {
				t.Errorf("Regex is %v", got)
			}
		})
	}
}

// only parses a single annotation, which must have no effect and cause one problem. It returns that problem.
func only(t *testing.T, key, value string) report.Problem {
	t.Helper()
	settings, problems := annotations.Parse(annotations.Settings{}, map[string]string{key: value})
	if len(problems) != 1 {
		t.Fatalf("%d problems instead of one: %v", len(problems), problems)
	}
	if !reflect.DeepEqual(settings, &annotations.Settings{}) {
		t.Errorf("it changes the settings: %+v", settings)
	}
	if want := "metadata.annotations[" + key + "]"; problems[0].Field != want {
		t.Errorf("field %q instead of %q", problems[0].Field, want)
	}
	return problems[0]
}
