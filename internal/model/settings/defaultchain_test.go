package settings_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/settings"
)

// TestDefaultChainsThatSelectNothing checks that a default chain that can never run is refused.
func TestDefaultChainsThatSelectNothing(t *testing.T) {
	for _, c := range []struct {
		namespaces, except []string
		fails              bool
	}{
		{nil, nil, false},
		{nil, []string{"team-*"}, false},
		{nil, []string{"*"}, true},
		{[]string{}, nil, true},
		{[]string{"web"}, []string{"web"}, true},
		{[]string{"web", "team-*"}, []string{"web"}, false},
		{[]string{"team-*"}, []string{"team-a"}, false},
		{[]string{"team-a", "team-b*"}, []string{"team-*"}, true},
		{[]string{"team-*"}, []string{"team-*"}, true},
	} {
		chain := settings.DefaultChain{Chain: "waf", Namespaces: c.namespaces, Except: c.except}
		err := (settings.Config{DefaultChains: []settings.DefaultChain{chain}}).Check()
		if (err != nil) != c.fails {
			t.Errorf("%+v: %v", chain, err)
		}
	}
}

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
