package annotations_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/annotations"
)

// TestRelativeRedirectsOfSnippets checks that the annotation and nginx's directive have the same effect on the
// redirects of a snippet.
func TestRelativeRedirectsOfSnippets(t *testing.T) {
	const snippet, relative = annotations.Prefix + "configuration-snippet", annotations.Prefix + "relative-redirects"
	for name, c := range map[string]struct {
		all  map[string]string
		want bool
	}{
		"neither":       {map[string]string{snippet: "return 302 /b;"}, false},
		"an annotation": {map[string]string{snippet: "return 302 /b;", relative: "true"}, true},
		"a directive":   {map[string]string{snippet: "absolute_redirect off; return 302 /b;"}, true},
	} {
		settings := parse(t, all, c.all)
		want := []ir.Filter{ir.Program{RelativeRedirects: c.want,
			Steps: []ir.Step{{Return: &ir.Return{Status: 302, Text: "/b", HasText: true}}}}}
		if diff := cmp.Diff(want, settings.Filters("/a")); diff != "" {
			t.Errorf("%s: filters (-want +got):\n%s", name, diff)
		}
	}
}
