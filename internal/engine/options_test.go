package engine

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/k8singress/k8singress/internal/settings"
)

// TestChainsReachTheTranslation: their names do, so that another list of them is another set of options, for which
// everything is translated again. What is in them is no matter of the translation.
func TestChainsReachTheTranslation(t *testing.T) {
	with := func(content string, names ...string) settings.Config {
		c := settings.Config{Chains: map[string]json.RawMessage{}}
		for _, name := range names {
			c.Chains[name] = json.RawMessage(content)
		}
		return c
	}
	one := options(with(`[]`, "staff", "limits"))
	if got := one.Ingress.Defaults.AvailableChains; !slices.Equal(got, []string{"limits", "staff"}) {
		t.Errorf("the names are %v", got)
	}
	if !reflect.DeepEqual(one, options(with(`[{}]`, "limits", "staff"))) {
		t.Error("the same names are other options")
	}
	if reflect.DeepEqual(one, options(with(`[]`, "staff"))) {
		t.Error("a chain that has gone is not noticed")
	}
}
