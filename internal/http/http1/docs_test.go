package http1_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
)

// TestReasonsAreDocumented checks that the documentation has a table of all reasons, which clients get.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/error-pages.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| reason | status | meaning |\n| --- | --- | --- |\n"
	for _, e := range http1.RequestErrors() {
		table += fmt.Sprintf("| `%s` | %d | %s |\n", e.Reason, e.Status, e.Meaning)
	}
	if !strings.Contains(string(page), table+"\n") {
		t.Errorf("docs/error-pages.md lacks this table:\n%s", table)
	}
}
