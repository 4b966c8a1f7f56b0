package settings_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestDefaultChainSelects checks which Ingresses the lists of a default chain select.
func TestDefaultChainSelects(t *testing.T) {
	for _, c := range []struct {
		chain            settings.DefaultChain
		namespace, class string
		want             bool
	}{
		{settings.DefaultChain{}, "shop", "", true},
		{settings.DefaultChain{Namespaces: []string{"team-*", "web"}}, "team-a", "nginx", true},
		{settings.DefaultChain{Namespaces: []string{"team-*", "web"}}, "web", "nginx", true},
		{settings.DefaultChain{Namespaces: []string{"team-*", "web"}}, "web2", "nginx", false},
		{settings.DefaultChain{Namespaces: []string{}}, "web", "nginx", false},
		{settings.DefaultChain{Classes: []string{"nginx"}}, "shop", "nginx", true},
		{settings.DefaultChain{Classes: []string{"nginx"}}, "shop", "", false},
		{settings.DefaultChain{Except: []string{"team-*"}}, "shop", "", true},
		{settings.DefaultChain{Except: []string{"team-*"}}, "team-a", "", false},
		{settings.DefaultChain{Namespaces: []string{"team-*"}, Except: []string{"team-a"}}, "team-a", "", false},
	} {
		if got := c.chain.Selects(c.namespace, c.class); got != c.want {
			t.Errorf("%+v selects %s, class %q: %t", c.chain, c.namespace, c.class, got)
		}
	}
}
