package pattern

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hostile has the most expensive patterns that are accepted: many threads that stay alive until the text ends, and
// expensive character classes.
var hostile = []string{
	`/.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*.*x!`, `/0(\w?){0,70}!`, `/0.{0,350}!`, `/([^/]+/?)*x!`, `/(a?){0,200}(.*)`,
	`/|.*a.*a.*a.*a.*!`, `/(\pL*\pN*)*!`, `/(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)`, `/0a{0,300}!`, `(a*)*b`,
	`/(.*.*.*)*\b!`,
	`/(é*è*ê*ô*.)*!`, `/0(\pL?){0,8}.*.*.*.*!`, `/([^\pN][\pL]*)*!`,
}

// BenchmarkWorstHost measures a request with a path of 16 KiB to a host with the most expensive patterns, including the
// groups of a pattern that matches.
func BenchmarkWorstHost(b *testing.B) {
	for _, text := range hostile {
		p, err := CompilePath(text)
		if err != nil {
			b.Fatal(err)
		}
		for _, letter := range []string{"a", "é", "\U00020000"} {
			path := "/0" + strings.Repeat(letter, 16<<10/len(letter))
			b.Run(fmt.Sprintf("size=%d/%.30s/%s", p.size, text, letter), func(b *testing.B) {
				begin := processorTime(b)
				defer func() { b.ReportMetric(float64(processorTime(b)-begin)/float64(b.N), "cpu-ns/op") }()
				for b.Loop() {
					budget := NewBudget()
					for range MaxHostSize / p.size {
						if found := p.Search(path, &budget); found == Yes {
							p.Submatch(path)
							break
						} else if found == Unknown {
							break
						}
					}
				}
			})
		}
	}
}

// processorTime returns the processor time of this process, which other processes on the machine do not affect.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHonestHost measures a host with 100 ordinary patterns of which the last one matches.
func BenchmarkHonestHost(b *testing.B) {
	for _, length := range []int{20, 200, 8 << 10} {
		path := "/service99/" + strings.Repeat("a", length)
		counted, plain := make([]*Pattern, 100), make([]*regexp.Regexp, 100)
		for i := range counted {
			text := fmt.Sprintf("/service%d(/|$)(.*)", i)
			counted[i], _ = CompilePath(text)
			plain[i] = regexp.MustCompile(ofPath + text)
		}
		b.Run(fmt.Sprintf("bytes=%d", length), func(b *testing.B) {
			for b.Loop() {
				budget, found := NewBudget(), No
				for i := 0; found == No; i++ {
					found = counted[i].Search(path, &budget)
				}
				if found != Yes {
					b.Fatal("it is not found")
				}
			}
		})
		b.Run(fmt.Sprintf("bytes=%d/regexp", length), func(b *testing.B) {
			for b.Loop() {
				for i := 0; !plain[i].MatchString(path); i++ {
				}
			}
		})
	}
}

// TestBudgetBounds checks that the searches in a host with the most expensive patterns stop after the steps of the
// budget. It logs how long they take.
func TestBudgetBounds(t *testing.T) {
	for _, text := range hostile {
		p, err := CompilePath(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/0" + strings.Repeat("a", 16<<10), "/0" + strings.Repeat("é", 8<<10),
			"/" + strings.Repeat("0a/", 5000)} {
			budget, begin := NewBudget(), time.Now()
			for range MaxHostSize / p.size {
				if p.Search(path, &budget) == Unknown {
					break
				}
			}
			if spent := maxSteps - budget.steps; spent > maxSteps+2*len(p.program().Inst) {
				t.Errorf("%s takes %d steps", text, spent)
			}
			t.Logf("%-45s %v", text, time.Since(begin))
		}
	}
}

// TestRefused checks that CompilePath and PathSize reject expressions that are too large, and accept ordinary ones.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"/0" + strings.Repeat(`\pL{0,1000}`, 89) + "!": "it compiles to",
		`/\pL{0,1000}`:                      "it compiles to",
		strings.Repeat(`\pL`, 99):           "it compiles to",
		"/((a{0,100}){0,100}){0,100}":       "not an RE2 regular expression",
		"/(a{0,40}){0,25}b{0,900}":          "it compiles to",
		"/" + strings.Repeat("a", MaxBytes): "1025 bytes long, and the limit is 1024",
		"/(a":                               "missing closing )",
	} {
		_, err := CompilePath(text)
		_, sizeErr := PathSize(text)
		if err == nil || !strings.Contains(err.Error(), want) || sizeErr == nil || err.Error() != sizeErr.Error() {
			t.Errorf("%.40s: %v, %v", text, err, sizeErr)
		}
	}
	for _, text := range []string{
		`/api(/|$)(.*)`, "/" + strings.Repeat("a", MaxBytes-1), `/(?:[\w-]{1,63}\.){1,4}\w+/.*`,
		`/[^/]{1,255}/\d{1,19}$`,
	} {
		if _, err := CompilePath(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"/admin(/|$)(.*)": "/admin", "/admin": "/admin", "/a|/b": "/", "/admin/a|/admin/b": "/", "/(a|b)": "/",
		"/x{0,3}y": "/", "/(": "/",
		`/v1\.2/.*`: "/v1.2/", ".*": "/", "": "/", "/adm?in": "/ad",
	} {
		if got := Prefix(text); got != want {
			t.Errorf("%s begins with %s, want %s", text, got, want)
		}
	}
}

// FuzzSearch checks that a search has the same result as package regexp, and that no compiled expression is larger than
// Size returns.
func FuzzSearch(f *testing.F) {
	for _, text := range append(hostile, `a|b`, `^$`, `(?m)^a$|\Bb`, `(?s)a.b`, `\bé+\b`, `(?i)k+s`, `(|a)+`,
		`((a|b)*|c)d?$`, `x{2,4}?`, `(?i)(kiss|abc+d|x(foo)?)`, `(?i)a?(long|skip){1,2}$`) {
		f.Add(text, "/0aaa\nb é K/x")
		f.Add(text, "")
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		if len(in) > 300 {
			return
		}
		for _, compile := range []func(string) (*Pattern, error){Compile, CompilePath} {
			p, err := compile(text)
			if err != nil {
				continue
			}
			if n := len(p.program().Inst); n > p.size {
				t.Errorf("%q is of %d instructions, and says %d", p, n, p.size)
			}
			budget := Budget{steps: 1 << 30}
			want := No
			if p.expression.MatchString(in) {
				want = Yes
			}
			if got := p.Search(in, &budget); got != want {
				t.Errorf("%q in %q: %d, want %d", p, in, got, want)
			}
			for _, plain := range []int{0, maxPlain} {
				budget = Budget{steps: 1 << 30, plain: plain}
				groups, found := p.SearchGroups(in, &budget)
				if found != want || !slices.Equal(groups, p.expression.FindStringSubmatchIndex(in)) {
					t.Errorf("%q in %q: %d with the groups %v, want %d", p, in, found, groups, want)
				}
			}
		}
	})
}

// TestSearchGroupsIsBounded checks that a search for groups stops when the budget is used up.
func TestSearchGroupsIsBounded(t *testing.T) {
	p, err := Compile(hostile[0])
	if err != nil {
		t.Fatal(err)
	}
	budget := NewBudget()
	if groups, found := p.SearchGroups("/"+strings.Repeat("a", 16<<10), &budget); found != Unknown || groups != nil {
		t.Errorf("the search returns %d with the groups %v", found, groups)
	}
}

// TestDollar checks that $ also matches before a line feed at the end of the string, as in nginx. The long strings are
// searched by this package, the others by package regexp.
func TestDollar(t *testing.T) {
	long := strings.Repeat("/", maxPlain)
	for _, c := range []struct {
		expression, text string
		want             bool
	}{
		{`\.php$`, "/x.php", true}, {`\.php$`, "/x.php\n", true}, {`\.php$`, "/x.php\n\n", false},
		{`\.php$`, "/x.php\nx", false}, {`\.php\z`, "/x.php\n", false}, {`/(a|b$)`, "/b\n", true},
		{`(?m)^/b$`, "/b\n/c", true}, {`^/(a|$)`, "/\n", true}, {`^[$]\$`, "$$", true}, {`^[$]\$`, "$\n", false},
		{`\.php$`, long + ".php\n", true}, {`\.php$`, long + ".php\n\n", false},
	} {
		p, err := Compile(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		if p.Find(c.text) != c.want || (p.Submatch(c.text) != nil) != c.want {
			t.Errorf("%s in %.20q: it matches: %v, want %v", c.expression, c.text, !c.want, c.want)
		}
		if p.String() != c.expression {
			t.Errorf("%s is printed as %s", c.expression, p)
		}
	}
}

// TestAdvice checks that the error for an expression that PCRE accepts and RE2 refuses says what to write instead.
func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"^/(?!a)": "look ahead", "(?=a)": "look ahead", "(?<=a)b": "look ahead", "(?<!a)b": "look ahead",
		`(a)\1`: "earlier group", `(?<n>a)\k<n>`: "earlier group", `(a)\g1`: "earlier group",
		"a++b": "remove the last +", "[a]*+b": "remove the last +", "a?+b": "remove the last +",
		"a{2}+b": "remove the last +", "(?>a)": "write (?:", "(?'n'a)": "(?<name>", "(?#a)b": "comments",
		"(?(1)a|b)": "alternatives", "(a(?R)?b)": "alternatives", "(?|a|b)": "alternatives", "(?x) a": "flag x",
		`\h`: "[ \\t]", `a\Z`: `write \z`, `a\Kb`: "use a group", `\R`: `\r?\n`,
	} {
		if _, err := Size(text); err == nil || !strings.HasSuffix(err.Error(), ")") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Size("("); err == nil || strings.HasSuffix(err.Error(), ")") {
		t.Errorf("a missing parenthesis: %v", err)
	}
}

func TestGroupNames(t *testing.T) {
	p, err := Compile(`(a)(?<Name>b)(?P<other>c)?\(?<X>[(?<Y>]`)
	if err != nil {
		t.Fatal(err)
	}
	if names := p.GroupNames(); !slices.Equal(names, []string{"", "", "name", "other"}) {
		t.Errorf("the names are %q", names)
	}
	if p.Submatch("ab<X><") == nil || p.Submatch("ab<x><") != nil {
		t.Error("the names change what the pattern matches")
	}
}

// TestMayBegin checks that MayBegin excludes no path that the pattern matches.
func TestMayBegin(t *testing.T) {
	for _, c := range []struct {
		expression, path string
		want             bool
	}{
		{"/api/(.*)", "/api/x", true}, {"/api/(.*)", "/API/x", true}, {"/api/(.*)", "/apis", false},
		{"/api/(.*)", "/api", false},
		{"/api?", "/ap", true}, {"/k", "/\u212a", true}, {"/\u00e9", "/\u00c9", true}, {"/x|/y", "/y", true},
		{"/S", "/\u017f", true},
		{"(?i)/api", "/API", true}, {"/@", "/`", false},
	} {
		if got := MayBegin(c.path, Prefix(c.expression)); got != c.want {
			t.Errorf("%q may match %q: %v", c.expression, c.path, got)
		}
		if compiled, err := CompilePath(c.expression); err != nil || compiled.Find(c.path) && !c.want {
			t.Errorf("%q matches %q, or %v", c.expression, c.path, err)
		}
	}
}
