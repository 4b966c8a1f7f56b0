package annotations_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// risks are all risk levels in ascending order.
var risks = []option.Risk{
	annotations.RiskLow, annotations.RiskMedium, annotations.RiskHigh, annotations.RiskCritical,
}

// gated parses annotations with a gate, and returns the problems that the gate has reported.
func gated(gate annotations.Gate, all map[string]string) (*annotations.Settings, []report.Problem) {
	settings, problems := annotations.Parse(annotations.Settings{Gate: gate}, all)
	return settings, slices.DeleteFunc(problems,
		func(p report.Problem) bool { return p.Reason != report.AnnotationNotAllowed })
}

// TestGateOfSnippets checks each combination of annotations-risk-level and allow-snippet-annotations for each snippet
// annotation. The snippets themselves are harmless.
func TestGateOfSnippets(t *testing.T) {
	texts := map[string]string{
		"configuration-snippet": "add_header X-A b;", "server-snippet": "gzip on;", "auth-snippet": "gzip on;",
		"stream-snippet": "server { listen 1; }", "modsecurity-snippet": "SecRuleEngine DetectionOnly",
	}
	for _, level := range risks {
		for _, allowed := range []bool{false, true} {
			for name, text := range texts {
				t.Run(fmt.Sprintf("%s %t %s", level, allowed, name), func(t *testing.T) {
					gate := annotations.Gate{Level: level, Snippets: allowed}
					other := map[string]string{annotations.Prefix + "use-regex": "true"}
					without, _ := gated(gate, other)
					other[annotations.Prefix+name] = text
					settings, problems := gated(gate, other)
					closed := level != annotations.RiskCritical
					if settings.Closed != closed || !settings.UseRegex {
						t.Errorf("closed: %t, and the other annotation applies: %t", settings.Closed,
							settings.UseRegex)
					}
					checkSnippetProblems(t, problems, closed, allowed)
					if read := !cmp.Equal(without, settings); !closed && read != allowed {
						t.Errorf("the snippet is read: %t, want %t", read, allowed)
					}
				})
			}
		}
	}
}

// checkSnippetProblems checks the problems of the gate with one snippet: an error that names both keys if the Ingress
// is closed, and a warning if snippets are not allowed.
func checkSnippetProblems(t *testing.T, problems []report.Problem, closed, allowed bool) {
	t.Helper()
	if !closed && allowed {
		if len(problems) > 0 {
			t.Errorf("got %v, want no problem", problems)
		}
		return
	}
	if len(problems) != 1 {
		t.Fatalf("got %v, want one problem", problems)
	}
	severity, message := report.Error, "annotations-risk-level to Critical and allow-snippet-annotations to true"
	switch {
	case !closed:
		severity, message = report.Warning, "allow-snippet-annotations in the ConfigMap is not true"
	case allowed:
		message = "annotations-risk-level to Critical; allow-snippet-annotations is true already"
	}
	if p := problems[0]; p.Severity != severity || !strings.Contains(p.Message, message) {
		t.Errorf("got %v, want severity %s and a message with %q", p, severity, message)
	}
}

// TestGateByRisk checks that each annotation closes its Ingress at each level below its risk, and that it then has no
// other effect than an annotation with an invalid value.
func TestGateByRisk(t *testing.T) {
	for i := range annotations.Table {
		row := &annotations.Table[i]
		value := row.Example
		if value == "" || value == "false" {
			value = "true"
		}
		for rank, level := range risks {
			gate := annotations.Gate{Level: level, Snippets: true}
			settings, problems := gated(gate, map[string]string{annotations.Key(row.Name): value})
			want := slices.Index(risks, row.Risk) > rank
			if refused := len(problems) == 1 && problems[0].Severity == report.Error; refused != want {
				t.Errorf("%s at %s: refused: %t, want %t", row.Name, level, refused, want)
			}
			if !want {
				continue
			}
			left := annotations.Settings{Gate: gate, Closed: true}
			left.Asked.Canary.Closed = true
			if row.OnError != nil {
				row.OnError(&left)
			}
			left.UseRegex = row.Name == "rewrite-target"
			left.Finish()
			if diff := cmp.Diff(&left, settings); diff != "" {
				t.Errorf("%s at %s (-want +got):\n%s", row.Name, level, diff)
			}
		}
	}
}

// TestGateStaysClosed checks that no other annotation opens an Ingress that the gate has closed.
func TestGateStaysClosed(t *testing.T) {
	for i := range annotations.Table {
		key := annotations.Key(annotations.Table[i].Name)
		for _, closing := range []string{"app-root", "stream-snippet"} {
			settings, _ := gated(annotations.Gate{Level: annotations.RiskLow},
				map[string]string{annotations.Prefix + closing: "/a", key: annotations.Table[i].Example})
			filters := settings.Filters("/")
			if !settings.Closed || len(filters) == 0 || filters[0] != (ir.DirectResponse{Status: 503}) {
				t.Errorf("%s beside %s: closed: %t, and the filters are %v", key, closing, settings.Closed, filters)
			}
			if c := settings.Canary; c != nil && !c.Closed {
				t.Errorf("%s beside %s: the canary is not closed", key, closing)
			}
			if settings.FiltersOfRoot() != nil && closing == "app-root" {
				t.Errorf("%s beside app-root: / is redirected", key)
			}
		}
	}
}

// TestGatedPathsStayRegular checks that the paths of a closed Ingress match as with the annotations that closed it.
// Otherwise requests for "/admin/.*" would get the path "/" of another Ingress.
func TestGatedPathsStayRegular(t *testing.T) {
	for _, beside := range []string{"true", "false", ""} {
		settings, _ := gated(annotations.Gate{Level: annotations.RiskLow},
			map[string]string{rewriteTarget: "/$1", annotations.Prefix + "use-regex": beside})
		if !settings.Regex("/admin/(.*)") || settings.RewriteTarget != "" {
			t.Errorf("beside use-regex %q: the paths are %+v", beside, settings)
		}
	}
}

// TestWordBlocklist checks which annotations the list applies to.
func TestWordBlocklist(t *testing.T) {
	for _, test := range []struct {
		name, key, value string
		closed           bool
	}{
		{"a supported annotation", rewriteTarget, "/serviceaccount/x", true},
		{"another case", rewriteTarget, "/ServiceAccount", false},
		{"another value", rewriteTarget, "/account", false},
		{"an annotation of our own", annotations.OwnPrefix + "chains", "serviceaccount", true},
		{"an annotation without effect", annotations.Prefix + "ssl-prefer-server-ciphers", "serviceaccount", true},
		{"an annotation that is not supported", annotations.Prefix + "modsecurity-transaction-id", "{}", true},
		{"an unknown annotation", annotations.Prefix + "no-such", "a serviceaccount", true},
		{"an annotation of another controller", "example.com/rewrite-target", "/serviceaccount", false},
		{"a snippet that is not allowed", annotations.Prefix + "configuration-snippet", "return 200 {};", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			gate := annotations.Gate{Level: annotations.RiskCritical, Words: []string{"serviceaccount", "{}"}}
			settings, problems := gated(gate, map[string]string{test.key: test.value})
			closed := slices.ContainsFunc(problems, func(p report.Problem) bool {
				return p.Severity == report.Error && strings.Contains(p.Message, "annotation-value-word-blocklist")
			})
			if settings.Closed != test.closed || closed != test.closed {
				t.Errorf("closed: %t, problems: %v, want closed %t", settings.Closed, problems, test.closed)
			}
		})
	}
}

// TestIgnoredSnippetsPassTheGate checks that with the option "snippets ignore", a snippet only causes a warning,
// whatever the level and the blocklist.
func TestIgnoredSnippetsPassTheGate(t *testing.T) {
	for _, level := range risks {
		defaults := annotations.Settings{
			IgnoreSnippets: true, Gate: annotations.Gate{Level: level, Snippets: true, Words: []string{"deny"}},
		}
		settings, problems := annotations.Parse(defaults,
			map[string]string{annotations.Prefix + "configuration-snippet": "deny all;"})
		if settings.Closed || len(problems) != 1 || problems[0].Severity != report.Warning ||
			!strings.Contains(problems[0].Message, "snippets ignore") {
			t.Errorf("%s: closed: %t, problems: %v, want one warning", level, settings.Closed, problems)
		}
	}
}

// TestNothingPassesTheGate checks that an annotation without a value closes nothing.
func TestNothingPassesTheGate(t *testing.T) {
	settings, problems := gated(annotations.Gate{}, map[string]string{
		annotations.Prefix + "configuration-snippet": "false", annotations.Prefix + "server-snippet": " \n",
	})
	if settings.Closed || len(problems) > 0 {
		t.Errorf("closed: %t, problems: %v", settings.Closed, problems)
	}
}

// TestGateOfCanary checks that a canary with an annotation that is not allowed is closed, even if the canary would
// take this setting from its main Ingress.
func TestGateOfCanary(t *testing.T) {
	for value, closed := range map[string]bool{"deny all;": true, "false": false} {
		defaults := annotations.Settings{}
		count, void := defaults.OfCanary(map[string]string{
			annotations.Prefix + "canary": "true", annotations.Prefix + "canary-weight": "50",
			annotations.Prefix + "configuration-snippet": value, annotations.Prefix + "enable-cors": "true",
		})
		settings, _ := annotations.Parse(defaults, count)
		if settings.Canary == nil || settings.Canary.Closed != closed || !slices.Contains(void, "enable-cors") {
			t.Errorf("%q: the canary is %+v, and %v have no effect", value, settings.Canary, void)
		}
	}
}
