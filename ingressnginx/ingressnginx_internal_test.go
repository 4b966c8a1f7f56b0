package ingressnginx

import (
	"slices"
	"strings"
	"testing"
)

// TestArguments checks which command lines are converted.
func TestArguments(t *testing.T) {
	for given, want := range map[string]string{
		"/nginx-ingress-controller":                      "/nginx-ingress-controller k8singress run",
		"nginx-ingress-controller --v=5 -h":              "nginx-ingress-controller k8singress run --v=5 -h",
		"/usr/bin/caddy /nginx-ingress-controller --v=5": "/usr/bin/caddy k8singress run --v=5",
		"/usr/bin/caddy run -c nginx-ingress-controller": "/usr/bin/caddy run -c nginx-ingress-controller",
		"/nginx-ingress-controller/caddy version":        "/nginx-ingress-controller/caddy version",
		"caddy nginx-ingress-controller.txt":             "caddy nginx-ingress-controller.txt",
		"caddy":                                          "caddy",
		"":                                               "",
	} {
		if got := arguments(strings.Fields(given)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}
