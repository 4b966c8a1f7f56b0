package option_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/option"
)

func TestSelect(t *testing.T) {
	known, given := map[string]int{"size": 1, "colour": 2}, option.Given{}
	for _, c := range []struct {
		name string
		want int
		err  string
	}{
		{"size", 1, ""}, {"colour", 2, ""},
		{"size", 1, "size is set twice: remove one"},
		{"color", 0, `the box has no option "color"; did you mean colour?`},
	} {
		got, err := option.Select(given, known, "the box", c.name, "remove one")
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != c.want || text != c.err {
			t.Errorf("%s: %d, %q; want %d, %q", c.name, got, text, c.want, c.err)
		}
	}
}
