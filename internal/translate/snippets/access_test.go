package snippets_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/ir"
	"github.com/k8singress/k8singress/internal/translate/snippets"
)

// words returns rules as nginx writes them.
func words(rules []ir.AccessRule) (all []string) {
	for _, rule := range rules {
		all = append(all, map[bool]string{true: "allow ", false: "deny "}[rule.Allow]+rule.Network)
	}
	return all
}

// besides precedes the rules that apply besides the block of limit_except.
const besides = "\nbesides limit_except:"

// limited returns the short form of a program with limit_except.
func limited(methods, rules string) string {
	return `{"limit_except":{"methods":[` + methods + `],"rules":[` + rules + `]}}`
}

// TestLimitInTwoTexts checks that the block of limit_except replaces only the rules of its own text, and that it must
// not be in both texts.
func TestLimitInTwoTexts(t *testing.T) {
	const limit, rules = "limit_except POST { allow all; } ", "allow 10.0.0.1; deny all;"
	want := limited(`"POST"`, `{"allow":true,"network":"all"}`) +
		"\ndeny 10.0.0.2/32\nallow 10.0.0.1/32\ndeny all" + besides
	const own = "deny 10.0.0.2;"
	if got := meaning(t, snippets.Location(limit+own, rules)); got != want+" allow 10.0.0.1/32, deny all" {
		t.Errorf("the meaning is %s\nwant %s", got, want)
	}
	if got := meaning(t, snippets.Location(own, rules+limit)); got != want+" deny 10.0.0.2/32" {
		t.Errorf("the meaning is %s\nwant %s", got, want)
	}
	for _, shared := range []string{limit, "limit_except POST { deny all; }", "limit_except GET { }"} {
		r := snippets.Location("limit_except POST { }", shared)
		if f := r.Closed(true); f == nil || !strings.Contains(f.Text, "remove one of them") {
			t.Errorf("%s: the finding is %v", shared, f)
		}
	}
}

// TestWithoutPassword checks that "auth_basic off" cancels no auth_basic of the other text.
func TestWithoutPassword(t *testing.T) {
	const off, on = "auth_basic off;", "auth_basic Staff;"
	for _, c := range []struct {
		own, shared             string
		place                   *snippets.Place
		ownClosed, sharedClosed bool
	}{
		{off, "", &snippets.Place{Line: 1}, false, false},
		{"", off, &snippets.Place{Shared: true, Line: 1}, false, false},
		{off, off, &snippets.Place{Line: 1}, false, false},
		{off, on, &snippets.Place{Line: 1}, false, true},
		{on, off, nil, true, false},
		{"limit_except GET { auth_basic off; }", "", nil, false, false},
	} {
		r := snippets.Location(c.own, c.shared)
		if (r.Closed(false) != nil) != c.ownClosed || (r.Closed(true) != nil) != c.sharedClosed {
			t.Errorf("%q and %q have the findings %v", c.own, c.shared, r.Findings)
		}
		if fmt.Sprint(r.WithoutPassword) != fmt.Sprint(c.place) {
			t.Errorf("%q and %q cancel passwords at %v, want %v", c.own, c.shared, r.WithoutPassword, c.place)
		}
	}
}
