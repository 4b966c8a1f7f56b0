package caddyfile

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/flags"
)

// TestFlagsOfIngressNginx checks that each flag of ingress-nginx corresponds to an existing option, and that the error
// for a flag that is used as an option suggests this option.
func TestFlagsOfIngressNginx(t *testing.T) {
	for i := range flags.Table {
		row := &flags.Table[i]
		if row.Scope == "" {
			continue
		}
		if options.Find(string(row.Scope)) == nil {
			t.Errorf("--%s stands for %s, which is no option", row.Name, row.Scope)
		}
		name := strings.ReplaceAll(row.Name, "-", "_")
		if options.Find(name) != nil {
			continue
		}
		for _, word := range []string{name, row.Name, "--" + row.Name, row.Name + "=x"} {
			if got, want := nearestOption(word), "; did you mean "+string(row.Scope)+"?"; got != want {
				t.Errorf("for %s: %q, want %q", word, got, want)
			}
		}
	}
}
