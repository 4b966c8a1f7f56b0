package option_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/model/option"
)

func TestSelect(t *testing.T) {
	known, given := map[string]int{"size": 1, "colour": 2, "width": 3}, option.Given{}
	for _, c := range []struct {
		name string
		want int
		err  string
	}{
		{"size", 1, ""}, {"colour", 2, ""},
		{"size", 1, "size is set twice: remove one"},
		{"color", 0, `the box has no option "color"; did you mean colour?`},
		{"age", 0, `the box has no option "age": its options are colour, size and width`},
	} {
		check(t, selection{given, known, c.name}, c.want, c.err)
	}
	check(t, selection{given, map[string]int{"size": 1}, "age"}, 0,
		`the box has no option "age": its only option is size`)
}

// selection has arguments of Select.
type selection struct {
	given option.Given
	known map[string]int
	name  string
}

func check(t *testing.T, s selection, want int, err string) {
	t.Helper()
	got, problem := option.Select(s.given, s.known, "the box", s.name, "remove one")
	text := ""
	if problem != nil {
		text = problem.Error()
	}
	if got != want || text != err {
		t.Errorf("%s: %d, %q; want %d, %q", s.name, got, text, want, err)
	}
}
