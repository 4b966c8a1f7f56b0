package nginx_test

import (
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/nginx"
)

func known(name string) bool { return name != "nosuch" }

func value(name string) string { return "<" + name + ">" }

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"plain":                   "plain",
		"$host":                   "<host>",
		"a$host.b":                "a<host>.b",
		"${host}x$request_uri":    "<host>x<request_uri>",
		"$http_x_user$cookie_a_B": "<http_x_user><cookie_a_B>",
		"{env.HOME}$arg_q":        "{env.HOME}<arg_q>",
	} {
		template, err := nginx.ParseTemplate(text, known)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := template.Expand(value); got != want {
			t.Errorf("%q expands to %q, want %q", text, got, want)
		}
	}
}

func TestExpandWithin(t *testing.T) {
	for text, size := range map[string]int{"": 0, "plain": 5, "$host": 6, "a${host}b$x.": 12} {
		template, err := nginx.ParseTemplate(text, known)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := template.ExpandWithin(size, value); !ok || got != template.Expand(value) {
			t.Errorf("%q expands to %q, %t", text, got, ok)
		}
		if _, ok := template.ExpandWithin(size-1, value); ok {
			t.Errorf("%q expands to fewer than %d bytes", text, size)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"$", "$nosuch", "${host", "${}", "$ host", "${http_x-y}", "$$host"} {
		if _, err := nginx.ParseTemplate(text, known); err == nil {
			t.Errorf("%q is read as a template", text)
		}
	}
}

// TestValuesAreNotReadAgain checks that variables in a client's value are not expanded.
func TestValuesAreNotReadAgain(t *testing.T) {
	template, err := nginx.ParseTemplate("$arg_a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := template.Expand(func(string) string { return "$host" }); got != "$host" {
		t.Errorf("the value $host became %q", got)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("$host$request_uri")
	f.Add("${http_x}{}$")
	f.Fuzz(func(t *testing.T, text string) {
		template, err := nginx.ParseTemplate(text, known)
		if err != nil {
			return
		}
		if got := template.Expand(func(string) string { return "" }); strings.Contains(got, "$") {
			t.Errorf("%q leaves %q", text, got)
		}
	})
}
