package nginx_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

// TestEscape checks which characters each function encodes.
func TestEscape(t *testing.T) {
	const text = "a/b:c=d&e+f;g?h#i%41 é\"\n~"
	for name, c := range map[string]struct {
		escape func(string) string
		want   string
	}{
		"component": {nginx.EscapeComponent, "a%2Fb%3Ac%3Dd%26e%2Bf%3Bg%3Fh%23i%2541%20%C3%A9%22%0A~"},
		"graphic":   {nginx.EscapeGraphic, "a/b:c=d&e+f;g?h%23i%41%20%C3%A9%22%0A~"},
		"argument":  {nginx.EscapeArgument, "a/b:c=d%26e%2Bf%3Bg%3Fh%23i%2541%20%C3%A9%22%0A~"},
		"controls":  {nginx.EscapeControls, "a/b:c=d&e+f;g?h#i%41 é\"%0A~"},
	} {
		if got := c.escape(text); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
