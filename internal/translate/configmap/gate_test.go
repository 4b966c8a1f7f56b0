package configmap

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestGate checks which annotations the keys allow, that an invalid key allows no more than no key, and that
// allow-snippet-annotations without annotations-risk-level causes a warning.
func TestGate(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        annotations.Gate
		problem     bool
	}{
		{"annotations-risk-level", "Critical", annotations.Gate{Level: annotations.RiskCritical}, false},
		{"annotations-risk-level", " low\n", annotations.Gate{Level: annotations.RiskLow}, false},
		{"annotations-risk-level", "Critical, High", annotations.Gate{Level: annotations.RiskLow}, true},
		{"annotations-risk-level", "", annotations.Gate{}, false},
		{"allow-snippet-annotations", "true", annotations.Gate{Snippets: true}, true},
		{"allow-snippet-annotations", "false", annotations.Gate{}, false},
		{"allow-snippet-annotations", "yes", annotations.Gate{}, true},
		{"annotation-value-word-blocklist", "a, b c ,,\nd,", annotations.Gate{Words: []string{"a", "b c", "d"}}, false},
		{"annotation-value-word-blocklist", ",", annotations.Gate{}, false},
	} {
		config, problems := parse(map[string]string{test.name: test.value})
		if diff := cmp.Diff(test.want, config.Defaults.Gate); diff != "" || len(problems) > 0 != test.problem {
			t.Errorf("%s: %q: problems %v, and (-want +got):\n%s", test.name, test.value, problems, diff)
		}
	}
	config, problems := parse(map[string]string{"annotations-risk-level": "Critical",
		"allow-snippet-annotations": "true", "annotation-value-word-blocklist": "a"})
	if len(problems) > 0 {
		t.Errorf("both keys together: %v", problems)
	}
	class, _ := ParseClass(config.Defaults, map[string]string{"annotations-risk-level": "Medium",
		"allow-snippet-annotations": "perhaps"})
	want := annotations.Gate{Level: annotations.RiskMedium, Words: []string{"a"}}
	if diff := cmp.Diff(want, class.Gate); diff != "" {
		t.Errorf("the class (-want +got):\n%s", diff)
	}
}
