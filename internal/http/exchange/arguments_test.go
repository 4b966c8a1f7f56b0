package exchange_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// TestArguments checks which argument of a query a variable stands for.
func TestArguments(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "a": "", "a=": "", "a=1": "1", "A=1&a=2": "1", "a&a=2": "2", "b=a=1&a=2": "2", "&&xa=1&&a=2=3&": "2=3",
		"ab=1&b=2": "", "=1&a=2": "2", "b=1&a": "", "b==&a=%20": "%20",
	} {
		x, _ := exchangetest.New(t, "GET http://shop.example/?"+query)
		if got := x.Variable("arg_a"); got != want {
			t.Errorf("?%s: %q, want %q", query, got, want)
		}
	}
}

// BenchmarkArguments measures the search in a query without names.
func BenchmarkArguments(b *testing.B) {
	x, _ := exchangetest.New(b, "GET http://shop.example/?"+strings.Repeat("&", 30_000))
	for b.Loop() {
		x.Variable("arg_a")
	}
}
