package snippets_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// TestEmptyVariables checks that variables that are always empty may stand in the values of header fields, with an
// information, and nowhere else.
func TestEmptyVariables(t *testing.T) {
	for text, accepted := range map[string]bool{
		"add_header A $upstream_cache_status;":                          true,
		"more_set_headers 'A: ${Upstream_Cache_Status}';":               true,
		"proxy_set_header A b$upstream_cache_status;":                   true,
		"more_set_input_headers 'A: $upstream_cache_status';":           false,
		"set $a $upstream_cache_status;":                                false,
		"set $upstream_cache_status HIT;":                               false,
		"if ($upstream_cache_status = HIT) { return 403; }":             false,
		"add_header A $upstream_cache_statuses;":                        false,
		"return 302 /$upstream_cache_status;":                           false,
		"add_header A $a; if ($host ~ (?<upstream_cache_status>a)) { }": false,
	} {
		read := snippets.Location(text, "")
		if closed := read.Closed(false); (closed == nil) != accepted {
			t.Errorf("%s: closed by %v", text, closed)
		}
		if !accepted {
			continue
		}
		got := strings.Join(written(read.Findings), "\n")
		if read.Findings[1].Class != snippets.NoEffect ||
			!strings.Contains(got, "line 1: the variable $upstream_cache_status is always empty") {
			t.Errorf("%s: the findings are %s", text, got)
		}
	}
}
