package annotations_test

import (
	"fmt"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/annotations"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestPathGroups checks which groups of a path become variables: never the ones that replace a variable of nginx, of
// http-snippet, or of another text of the ConfigMap. Otherwise a path could decide whether such a text rejects clients.
func TestPathGroups(t *testing.T) {
	defaults := all
	defaults.HTTP = snippets.ReadHTTP("map $http_a $mapped { default 1; }")
	defaults.Asked.Snippets.Location.Shared = "if ($http_b ~ (?<found>.)) { set $Shared 1; }"
	defaults.Asked.Snippets.Server.Shared = "set $of_server 1; location ~ /(?<located>.) { }"
	defaults.Asked.GlobalAuth.Snippet.Read = snippets.Auth("set $of_auth 1;")
	path := "/x"
	for _, name := range []string{
		"mapped", "found", "shared", "of_server", "located", "of_auth", "host", "http_a", "ID", "other",
	} {
		path += fmt.Sprintf("/(?<%s>.)", name)
	}
	defaults.PathGroups = ir.GroupNames(path)
	s, problems := annotations.Parse(defaults, map[string]string{
		annotations.Prefix + "configuration-snippet": "set $own $id; return 200 $other;",
		annotations.Prefix + "rewrite-target":        "https://a.example/$id",
	})
	if problems != nil {
		t.Error(problems)
	}
	var got []string
	for _, f := range s.Filters(path) {
		if groups, ok := f.(ir.PathGroups); ok {
			got = append(got, groups.Names...)
		}
	}
	if fmt.Sprint(got) != "[id other]" {
		t.Errorf("%v become variables", got)
	}
	for _, f := range s.Filters("/(?<host>.)") {
		if groups, ok := f.(ir.PathGroups); ok {
			t.Errorf("%v becomes a variable", groups.Names)
		}
	}
	if s, _ := annotations.Parse(defaults, map[string]string{
		annotations.Prefix + "configuration-snippet": "return 200 $nothing;",
	}); !s.Closed {
		t.Error("an unknown variable is accepted")
	}
}
