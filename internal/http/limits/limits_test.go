package limits_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/limits"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// TestHeads checks the maximum size of request headers. Snippets raise it, but not above a setting of the
// administrator.
func TestHeads(t *testing.T) {
	for name, c := range map[string]struct {
		server       limits.Limits
		key, snippet int
		want         int
	}{
		"nothing":                      {limits.Limits{HeadBytes: 32}, 0, 0, 32},
		"a key":                        {limits.Limits{HeadBytes: 32}, 4, 0, 4},
		"a snippet":                    {limits.Limits{HeadBytes: 32}, 0, 64, 64},
		"a small snippet":              {limits.Limits{HeadBytes: 32}, 0, 16, 32},
		"a snippet above a key":        {limits.Limits{HeadBytes: 32}, 4, 16, 16},
		"a snippet below a key":        {limits.Limits{HeadBytes: 32}, 100, 64, 100},
		"a fixed limit":                {limits.Limits{HeadBytes: 32, HeadFixed: true}, 0, 64, 32},
		"a key above a fixed limit":    {limits.Limits{HeadBytes: 32, HeadFixed: true}, 40, 64, 40},
		"all below a fixed limit":      {limits.Limits{HeadBytes: 32, HeadFixed: true}, 4, 16, 16},
		"a snippet above both of them": {limits.Limits{HeadBytes: 32, HeadFixed: true}, 4, 64, 32},
	} {
		by := &ir.ClientConnections{MaxHead: c.key, SnippetHead: c.snippet}
		if got := c.server.With(by).HeadBytes; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
