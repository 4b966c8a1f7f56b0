package suggest_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/suggest"
)

func TestOf(t *testing.T) {
	for _, test := range []struct{ word, known, want string }{
		{"nginx", "nginx", "nginx"},
		{"nginxx", "edge nginx", "nginx"},
		{"ngnix", "edge nginx", "nginx"},
		{"nginx-int", "nginx nginx-ext nginx-intern", "nginx-ext"},
		{"nginx-inter", "nginx nginx-ext nginx-intern", "nginx-intern"},
		{"traefik", "edge nginx", ""},
		{"of", "on off", "on"},
		{"a", "b", ""},
		{"", "a b", ""},
		{"ab", "", ""},
	} {
		if got := suggest.Of(test.word, strings.Fields(test.known)); got != test.want {
			t.Errorf("nearest to %q in %q is %q, want %q", test.word, test.known, got, test.want)
		}
	}
}

func TestHint(t *testing.T) {
	known := []string{"Lax", "Strict", "http2-push"}
	for word, want := range map[string]string{
		"strickt": "; did you mean Strict?", "LAX": "; did you mean Lax?", "http-push": "; did you mean http2-push?",
		"none": "", "": "",
	} {
		if got := suggest.Hint(word, known); got != want {
			t.Errorf("the hint for %q is %q, want %q", word, got, want)
		}
	}
}
