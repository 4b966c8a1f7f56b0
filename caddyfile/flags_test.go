package caddyfile

import (
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/control/flags"
)

// differentFlags lists the flags that take other values than their options, or that are only one setting of their
// option. So their descriptions differ, too.
var differentFlags = strings.Fields(`publish-status-address report-node-internal-ip-address update-status
	watch-namespace disable-svc-external-name http-port https-port healthz-port healthz-host enable-metrics
	shutdown-grace-period election-id disable-leader-election health-check-path ingress-class-by-name
	validating-webhook validating-webhook-certificate validating-webhook-key
	metrics-per-host metrics-per-undefined-host report-status-classes exclude-socket-metrics time-buckets
	length-buckets size-buckets bucket-factor max-buckets`)

// TestDescriptionsOfFlags checks that the description of a flag is the first sentence about its option.
func TestDescriptionsOfFlags(t *testing.T) {
	rows := optionsOf(described(t))
	for i := range flags.Table {
		flag := &flags.Table[i]
		row := rows.Find(string(flag.Scope))
		if row == nil || slices.Contains(differentFlags, flag.Name) {
			continue
		}
		if sentence, _, _ := strings.Cut(row.Doc+" ", ". "); flag.Doc != strings.TrimSuffix(sentence, " ")+"." {
			t.Errorf("--%s is described as %q, and %s as %q", flag.Name, flag.Doc, row.Name, sentence)
		}
	}
}

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
