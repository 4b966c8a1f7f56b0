package featuretests

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestCVE checks that the manifests of testdata/cves.yaml have no effect. Each is an attack from an advisory about
// another ingress controller: its text is rejected or stays literal, and an unreadable guard lets no client in.
// TestCVEOfOthers has the attacks that need more than a manifest.
func TestCVE(t *testing.T) {
	manifests, err := os.ReadFile("testdata/cves.yaml")
	if err != nil {
		t.Fatal(err)
	}
	ip, port := backend(t, "web")
	in := start(t, join(class, service("web", port, ip), caSecret("ca", fixture.Authority(t, nil, "ca")),
		string(manifests)))
	for name, c := range map[string]struct {
		path   string
		status int
		// reason is the reason of the verdict on the Ingress. It is empty if there must be none.
		body, reason string
	}{
		"cve-2021-25742": {"/owned", http.StatusServiceUnavailable, "", "AnnotationNotAllowed"},
		"cve-2021-25746": {"/owned", http.StatusOK, "web /owned", "InvalidAnnotation"},
		"cve-2023-5043":  {"/owned", http.StatusOK, "web /owned", "InvalidAnnotation"},
		"cve-2023-5044":  {"/owned", http.StatusOK, "web /owned", "InvalidAnnotation"},
		"cve-2024-7646":  {"/owned", http.StatusServiceUnavailable, "", "InvalidAnnotation"},
		"cve-2025-1097":  {"/owned", http.StatusForbidden, "", "InvalidAnnotation"},
		"cve-2025-1098":  {"/owned", http.StatusOK, "web /owned", "InvalidAnnotation"},
		"cve-2025-24514": {"/owned", http.StatusServiceUnavailable, "", "InvalidAnnotation"},
		"cve-2025-15566": {"/owned", http.StatusServiceUnavailable, "", "InvalidAnnotation"},
		"cve-2026-1580":  {"/owned", http.StatusServiceUnavailable, "", "InvalidAnnotation"},
		"cve-2026-3288":  {"/owned", http.StatusOK, "web /owned", "InvalidAnnotation"},
		"cve-2026-54762": {"/owned", http.StatusServiceUnavailable, "", "SecretNotFound"},
		"cve-2026-67309": {"/api..%2fadmin", http.StatusBadRequest, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := in.get(name+".example", c.path)
			if got.status != c.status || got.body != c.body && (c.body != "" || strings.HasPrefix(got.body, "web")) {
				t.Errorf("%s: %d %q, want %d %q", c.path, got.status, got.body, c.status, c.body)
			}
			in.speaking(t, plain1).eventually("what the author is told", func() error {
				if reasons := in.reasons("Ingress/default/" + name); c.reason != "" &&
					!slices.Contains(reasons, c.reason) {
					return fmt.Errorf("it is %q, without %s", reasons, c.reason)
				}
				return nil
			})
		})
	}
	if strings.Contains(string(in.document()), "owned") {
		t.Error("text of an annotation stands in the document")
	}
}
