package option_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/k8singress/k8singress/internal/model/nginx"
	"github.com/k8singress/k8singress/internal/model/option"
	"github.com/k8singress/k8singress/internal/model/report"
)

type settings struct {
	Size   int
	Guard  string
	List   string
	Closed bool
}

var table = option.Table[settings, string]{
	{
		Name:  "size",
		Parse: nginx.Into(func(s *settings) *int { return &s.Size }, strconv.Atoi),
		Check: func(s *settings) string { return option.Unless(s.Guard != "", "this has no effect without guard") },
	},
	{
		Name: "guard",
		Parse: func(s *settings, value string) error {
			if value != "good" {
				return errors.New("write good")
			}
			s.Guard = value
			return nil
		},
		OnError: func(s *settings) { s.Closed = true }, Meanwhile: "all is closed",
	},
	{
		Name: "list", Raw: true, Lines: true,
		Parse: nginx.Into(func(s *settings) *string { return &s.List }, func(value string) (string, error) {
			switch value {
			case "half":
				return "ha", nginx.Partial("left out: lf")
			case "odd":
				return "odd", nginx.Remark("odd is odd")
			case "old":
				return "", nginx.Unsupported("old is not supported")
			}
			return value, nil
		}),
	},
	{Name: "tuning", Ignored: "nginx alone needs it"},
}

// read reads pairs of names and values.
func read(pairs ...string) (settings, []string) {
	s := settings{}
	r := option.Reading[settings]{Settings: &s, Invalid: report.InvalidEntry}
	for i := 0; i < len(pairs); i += 2 {
		r.Read(table.Find(pairs[i]), pairs[i+1], "data["+pairs[i]+"]")
	}
	r.Check()
	var problems []string
	for _, p := range r.Problems {
		problems = append(problems, string(p.Severity)+" "+string(p.Reason)+" "+p.Field+": "+p.Message)
	}
	return s, problems
}

func TestRead(t *testing.T) {
	for _, test := range []struct {
		name     string
		pairs    []string
		want     settings
		problems []string
	}{
		{"good values", []string{"size", " 7 ", "guard", "good"}, settings{Size: 7, Guard: "good"}, nil},
		{"empty values ask for nothing", []string{"size", "", "guard", "  "}, settings{}, nil},
		{"no effect alone", []string{"size", "7"}, settings{Size: 7},
			[]string{"warning InvalidEntry data[size]: this has no effect without guard"}},
		{"an error changes nothing and is not checked", []string{"size", "x"}, settings{},
			[]string{`error InvalidEntry data[size]: strconv.Atoi: parsing "x": invalid syntax`}},
		{"an error of a guard closes", []string{"guard", "bad"}, settings{Closed: true},
			[]string{"error InvalidEntry data[guard]: write good; meanwhile, all is closed"}},
		{"white space round a value, as a block of YAML ends with it", []string{"guard", "\n good\n"},
			settings{Guard: "good"}, nil},
		{"so does a line break", []string{"guard", "go\nod"}, settings{Closed: true},
			[]string{"error InvalidEntry data[guard]: " +
				"the value contains the character U+000A: write it on one line of plain text; meanwhile, all " +
				"is closed"}},
		{"a raw value of many lines", []string{"list", " a\nb "}, settings{List: " a\nb "}, nil},
		{"a part counts", []string{"list", "half"}, settings{List: "ha"},
			[]string{"error InvalidEntry data[list]: left out: lf"}},
		{"a remark", []string{"list", "odd"}, settings{List: "odd"},
			[]string{"warning InvalidEntry data[list]: odd is odd"}},
		{"unsupported", []string{"list", "old"}, settings{},
			[]string{"error UnsupportedValue data[list]: old is not supported"}},
		{"ignored", []string{"tuning", "\x00"}, settings{}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := read(test.pairs...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongValuesAreRefused(t *testing.T) {
	if got, problems := read("guard", strings.Repeat("x", option.MaxBytes+1)); !got.Closed || len(problems) != 1 ||
		!strings.Contains(problems[0], "8193 bytes") {
		t.Errorf("%+v, %v", got, problems)
	}
	if got, problems := read("list", strings.Repeat("x", option.MaxBytes+1)); len(got.List) != option.MaxBytes+1 ||
		len(problems) > 0 {
		t.Errorf("%d bytes, %v", len(got.List), problems)
	}
}

// TestIn checks that a row for a part of the settings works like the original row.
func TestIn(t *testing.T) {
	type all struct{ Part settings }
	part := func(a *all) *settings { return &a.Part }
	size, guard := option.In(part, table.Find("size")), option.In(part, table.Find("guard"))
	a := all{}
	r := option.Reading[all]{Settings: &a, Invalid: report.InvalidEntry}
	r.Read(&size, "7", "size")
	r.Read(&guard, "bad", "guard")
	r.Check()
	if diff := cmp.Diff(all{settings{Size: 7, Closed: true}}, a); diff != "" || len(r.Problems) != 2 {
		t.Errorf("%v, and (-want +got):\n%s", r.Problems, diff)
	}
}

// TestNames checks that values which others need are read before them.
func TestNames(t *testing.T) {
	values := map[string]string{"a": "", "b": "", "c": "", "d": ""}
	for _, c := range []struct{ first, want string }{
		{"", "a b c d"}, {"c", "c a b d"}, {"d b", "d b a c"}, {"e a", "a b c d"},
	} {
		if got := strings.Join(option.Names(values, strings.Fields(c.first)...), " "); got != c.want {
			t.Errorf("with %q first: %s, want %s", c.first, got, c.want)
		}
	}
}
