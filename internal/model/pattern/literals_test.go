package pattern

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	// robots is a list as many snippets have it. browser is the User-Agent of a browser.
	robots  = `(AhrefsBot|SemrushBot|MJ12bot|DotBot|PetalBot|BLEXBot|Bytespider|GPTBot|python-requests|scrapy)`
	browser = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36"
)

// TestLiterals checks which literals an expression has. Without literals, each text is searched.
func TestLiterals(t *testing.T) {
	for text, want := range map[string]string{
		"(?i)badbot":                "badbot",
		"(?i)bot":                   "bot",
		"(?i)bo":                    "",
		"(?i)(BadBot|curl|Wget.*x)": "badbot curl wget",
		"badbot|curl":               "badbot curl",
		"(badbot|)":                 "",
		"badbot|cu":                 "",
		"(?i).*(?P<n>abc)+.*longer": "longer",
		"(?i)(abc|defg){2}x?":       "abc defg",
		"(?i)(abcd){0,2}x?":         "",
		"(?i)(abcd)*(efgh)?":        "",
		"[ab]?xyz$":                 "xyz",
		"(?i)é-abc":                 "",
		"(?i)ſab":                   "sab",
		"badbot":                    "",
		"^(?i)badbot":               "",
		"(?i)[a-z]abc-é":            "",
	} {
		p, err := Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if p.literals != nil {
			got = slices.Concat(p.literals.byFirst...)
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s has the literals %q, want %q", text, got, want)
		}
	}
}

// TestExcluded checks that a search for literals has the same result as a search for the pattern, and what it costs.
func TestExcluded(t *testing.T) {
	p, err := CompileFold(robots + "x?")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?i)" + robots)
	for _, text := range []string{"", "b", browser, "petalbo", browser + " petalBOT", "dotbot/1",
		"DOTBO\u212A DotBo", "Python-Reque\u017Fts", "é", "\xff\xffdotbot", strings.Repeat("d", maxFiltered),
		strings.Repeat("d", maxFiltered) + "dotbot"} {
		want := No
		if all.MatchString(text) {
			want = Yes
		}
		budget := NewBudget()
		if got := p.Search(text, &budget); got != want {
			t.Errorf("%.50q: %d, want %d", text, got, want)
		}
		if text == browser && budget.plain < maxPlain-4*len(browser) {
			t.Errorf("the User-Agent of a browser uses up %d of the budget", maxPlain-budget.plain)
		}
	}
}

// TestExpensiveLiterals checks that the search for literals is bounded. Each literal is compared at each byte.
func TestExpensiveLiterals(t *testing.T) {
	var all []string
	for _, last := range "abcdefghijklmnopqrstuvwxyz" {
		all = append(all, strings.Repeat("a", 30)+string(last)+"!")
	}
	p, err := Compile("(" + strings.Join(all, "|") + ")x|.zzz")
	if err != nil {
		t.Fatal(err)
	}
	budget := NewBudget()
	if p.literals.exclude(strings.Repeat("a", maxFiltered), &budget.plain); budget.plain < -1000 {
		t.Errorf("the search uses up %d of %d", maxPlain-budget.plain, maxPlain)
	}
}

// BenchmarkLiterals searches a User-Agent that does not match.
func BenchmarkLiterals(b *testing.B) {
	p, err := CompileFold(robots)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("literals", func(b *testing.B) {
		for b.Loop() {
			p.Find(browser)
		}
	})
	b.Run("regexp", func(b *testing.B) {
		for b.Loop() {
			p.expression.MatchString(browser)
		}
	})
}
