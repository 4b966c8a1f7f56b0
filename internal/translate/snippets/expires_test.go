package snippets_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

func TestExpires(t *testing.T) {
	for text, want := range map[string]string{
		"expires 1h30m;":                    `{"seconds":5400}`,
		"expires -1;":                       `{"seconds":-1}`,
		"expires 0;":                        `{}`,
		"expires 10y;":                      `{"seconds":315360000}`,
		"expires max;":                      `{"mode":"max"}`,
		"expires off;":                      `{"mode":"off"}`,
		"expires modified +1d;":             `{"seconds":86400,"modified":true}`,
		"expires @15h30m;":                  `{"mode":"daily","seconds":55800}`,
		"expires $HTTP_A;":                  `{"template":"$http_a"}`,
		"expires modified \"${ARG_A}h\";":   `{"modified":true,"template":"${arg_a}h"}`,
		"set $a 1d; if ($a) { expires 1; }": `{"seconds":1}`,
	} {
		r := snippets.Location(text, "")
		checkAccepted(t, r)
		if got := meaning(t, r); !strings.Contains(got, `"expires":`+want) || lines(r) != "" {
			t.Errorf("%s\nhas the meaning %s, want %s\nfindings: %v", text, got, want, r.Findings)
		}
	}
	for text, want := range map[string]string{
		"expires sometimes;":      `"sometimes" is not a time`,
		"expires '';":             `"" is not a time`,
		"expires --1;":            `"-1" is not a time`,
		"expires 200y;":           "at most 100 years",
		"expires 500ms;":          "write a time in seconds",
		"expires changed 1h;":     `write modified in front of the time`,
		"expires modified epoch;": "write a time behind modified",
		"expires modified @1h;":   "a time of day cannot follow modified",
		"expires @25h;":           `"@25h" is not a time of day`,
		"expires $nothing;":       "there is no variable $nothing",
	} {
		f := snippets.Location(text, "").Closed(false)
		if f == nil || f.Class != snippets.Unreadable || !strings.Contains(f.Text, want) {
			t.Errorf("%s: %v, want %s", text, f, want)
		}
	}
}
