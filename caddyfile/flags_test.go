package caddyfile

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/flags"
)

// TestFlagsOfIngressNginx holds that each flag of ingress-nginx stands for an option that there is, and that the error on a flag in the
// place of an option names that one.
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
