package ascii_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/ascii"
)

func TestLower(t *testing.T) {
	for c := range 256 {
		want := byte(c)
		if c >= 'A' && c <= 'Z' {
			want = "abcdefghijklmnopqrstuvwxyz"[c-'A']
		}
		if got := ascii.Lower(byte(c)); got != want {
			t.Errorf("%#x becomes %#x", c, got)
		}
	}
}
