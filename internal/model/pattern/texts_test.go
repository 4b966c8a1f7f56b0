package pattern_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/pattern"
)

func TestTexts(t *testing.T) {
	texts, err := pattern.NewTexts([]string{"curl/8.0", `\~tilde`, "~^Bad", "~*worse", "~x{3}$"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"curl/8.0": true, "CURL/8.0": true, "curl/8.0.1": false, "~Tilde": true, "tilde": false,
		"Bad bot": true, "bad bot": false, "a Bad": false, "far WORSE": true, "axxx": true, "xxx a": false, "": false,
	} {
		if got := texts.Has(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if none, err := pattern.NewTexts(nil); err != nil || none.Has("") {
		t.Errorf("no entries: %v", err)
	}
	if empty, err := pattern.NewTexts([]string{""}); err != nil || !empty.Has("") || empty.Has("a") {
		t.Errorf("an empty entry: %v", err)
	}
}

func TestTextsAreRefused(t *testing.T) {
	for _, entries := range [][]string{
		{"~("}, {"good", "~*(?=a)"}, {"~" + strings.Repeat("a", pattern.MaxBytes+1)},
		slices.Repeat([]string{"~[a-z]{1,400}"}, 100),
	} {
		if _, err := pattern.NewTexts(entries); err == nil {
			t.Errorf("%.40q is taken", entries)
		}
	}
}
