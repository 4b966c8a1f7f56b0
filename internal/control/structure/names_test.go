package structure_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/structure"
	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestServerNames checks that the servers have the names in the options, that a merge renames servers with the default
// names, and that another server with such a name is an error.
func TestServerNames(t *testing.T) {
	options := settings.Config{ServerNames: map[string]string{"http": "edge"}}
	config := structure.Structure(settings.Config{})
	if err := structure.Merge(config, options); err != nil {
		t.Fatal(err)
	}
	want := structure.Structure(options)
	servers := structure.Branch(config, "apps", "http", "servers")
	if servers["edge"] == nil || servers[structure.HTTPServer] != nil || servers[structure.HTTPSServer] == nil ||
		!reflect.DeepEqual(servers, structure.Branch(want, "apps", "http", "servers")) {
		t.Errorf("the servers are %v", servers)
	}
	servers["edge"].(map[string]any)["routes"] = []any{}
	got := structure.Memory{}.Overwrites(config, options)
	if len(got) != 1 || !strings.HasPrefix(got[0], "edge.routes: ") {
		t.Errorf("the overwritten settings are %q", got)
	}
	if got := structure.OwnName(options, "edge"); got != structure.HTTPServer {
		t.Errorf("the server edge is %s", got)
	}
	for name, names := range map[string]map[string]string{
		"a site": {"http": "srv0"}, "the same": {"http": "a", "https": "a"},
		"a default": {"http": structure.HTTPSServer},
	} {
		config := map[string]any{"apps": map[string]any{"http": map[string]any{"servers": map[string]any{
			"srv0": map[string]any{"listen": []any{":8080"}}}}}}
		err := structure.Merge(config, settings.Config{ServerNames: names})
		if err == nil || !strings.Contains(err.Error(), "is taken by another server") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
