package variables_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/variables"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// request computes variables of one request. others are the variables of nginx.
type request struct {
	set    *variables.Set
	values variables.Values
	others map[string]string
	// computed counts how often each of the others was used.
	computed map[string]int
}

func newRequest(t *testing.T, all []ir.Variable, others map[string]string) *request {
	t.Helper()
	set, err := variables.New(all)
	if err != nil {
		t.Fatal(err)
	}
	return &request{set: set, others: others, computed: map[string]int{}}
}

func (r *request) value(name string) string {
	if r.set.Has(name) {
		return r.set.Value(name, &r.values, r.value)
	}
	r.computed[name]++
	return r.others[name]
}

// TestMap checks the values of maps for texts. The values are as in nginx.
func TestMap(t *testing.T) {
	hosts := &ir.Map{Source: "$host", Default: "none", Hostnames: true, Exact: map[string]string{
		"a.example": "exact", "*.example": "below", "*.b.example": "below b", ".c.example": "c", "www.*": "www",
		"www.d.*": "www d",
	}}
	words := &ir.Map{Source: "$host", Default: "<$other>", Exact: map[string]string{"Ab": "letters", "": "empty",
		"*.example": "no mask"}, Patterns: []ir.MapPattern{
		{Pattern: "^x(.)(?P<rest>.*)$", Value: "$rest/$1/$2/$9/$other"}, {Pattern: "^Y", Fold: true, Value: "y"},
		{Pattern: "^x", Value: "never"}, {Pattern: "^$", Value: "never"},
	}}
	for _, c := range []struct {
		of         *ir.Map
		text, want string
	}{
		{words, "ab", "letters"}, {words, "AB", "letters"}, {words, "", "empty"}, {words, "x1ab", "ab/1/ab//o"},
		{words, "yes", "y"}, {words, "a.example", "<o>"}, {words, "*.EXAMPLE", "no mask"}, {words, "É", "<o>"},
		{words, "\xff", "<o>"},
		{hosts, "A.example", "exact"}, {hosts, "a.example.", "exact"}, {hosts, "x.a.example", "below"},
		{hosts, "b.example", "below"}, {hosts, "x.y.b.example", "below b"}, {hosts, "c.example", "c"},
		{hosts, "x.c.example", "c"}, {hosts, "www.com", "www"}, {hosts, "www.d.co.uk", "www d"},
		{hosts, "www.d.example", "below"}, {hosts, "www", "none"}, {hosts, "example", "none"}, {hosts, "", "none"},
		{hosts, strings.Repeat("a.", 1000) + "example", "below"}, {hosts, "www." + strings.Repeat("a.", 1000), "www"},
		{&ir.Map{Source: "$host"}, "a", ""},
	} {
		r := newRequest(t, []ir.Variable{{Name: "v", Map: c.of}}, map[string]string{"host": c.text, "other": "o"})
		if got := r.value("v"); got != c.want || r.values.Failed() != nil {
			t.Errorf("%.20q becomes %q, want %q", c.text, got, c.want)
		}
	}
}

// TestGeo checks the values for addresses.
func TestGeo(t *testing.T) {
	ranges := func(all ...string) (list []ir.GeoRange) {
		for _, text := range all {
			first, rest, _ := strings.Cut(text, "-")
			last, value, _ := strings.Cut(rest, " ")
			list = append(list, ir.GeoRange{
				First: netip.MustParseAddr(first), Last: netip.MustParseAddr(last), Value: value,
			})
		}
		return list
	}
	of := &ir.Geo{Default: "else", Ranges: ranges("10.0.0.0-10.255.255.255 ten", "10.1.0.0-10.1.255.255 one",
		"10.1.2.3-10.1.2.3 me", "10.0.0.0-10.0.0.255 first", "10.255.0.0-10.255.255.255 last",
		"0.0.0.0-0.0.0.0 zero", "255.255.255.0-255.255.255.255 top", "2001:db8::-2001:db8::ffff six",
		"2001:db8::5-2001:db8::5 five", "10.2.0.0-10.2.0.0 $host")}
	r := newRequest(t, []ir.Variable{{Name: "v", Geo: of}}, map[string]string{"host": "never"})
	for address, want := range map[string]string{
		"10.0.0.0": "first", "10.0.1.0": "ten", "10.1.0.0": "one", "10.1.2.2": "one", "10.1.2.3": "me",
		"10.1.2.4": "one", "10.1.255.255": "one", "10.2.0.0": "$host", "10.254.255.255": "ten", "10.255.1.1": "last",
		"11.0.0.0": "else", "9.255.255.255": "else", "0.0.0.0": "zero", "0.0.0.1": "else", "255.255.255.255": "top",
		"2001:db8::1": "six", "2001:db8::5": "five", "2001:db8::6": "six", "2001:db8::1:0": "else",
		"::ffff:10.1.2.3": "me", "fe80::1%eth0": "else", "": "else", "unix:": "else",
	} {
		r.values, r.others["remote_addr"] = variables.Values{}, address
		if got := r.value("v"); got != want {
			t.Errorf("%s has %q, want %q", address, got, want)
		}
	}
	r = newRequest(t, []ir.Variable{{Name: "v", Geo: &ir.Geo{Address: "${arg_a}.1", Ranges: of.Ranges}}},
		map[string]string{"arg_a": "10.1.2", "remote_addr": "10.1.2.3"})
	if got := r.value("v"); got != "one" {
		t.Errorf("the address of an argument has %q", got)
	}
}

// TestSplitClients checks that each key gets the value that nginx 1.22 gives it.
func TestSplitClients(t *testing.T) {
	of := &ir.SplitClients{Key: "$key", Parts: []ir.SplitPart{{Share: 50, Value: "a"}, {Share: 3000, Value: "$key"},
		{Share: 1234, Value: "c"}, {Share: 4000, Value: "d"}, {Value: "e"}}}
	for key, want := range map[string]string{
		"": "a", "a": "d", "ab": "$key", "abc": "$key", "abcd": "$key", "client-1": "e", "client-22": "d",
		"client-333": "e", "2001:db8::1": "e", "10.1.2.3": "$key", "10.2.1.1": "d", "10.0.0.9": "d", "10.0.0.200": "c",
		"A.example": "d", "x.c.example": "$key", "~t": "c", "0": "$key",
	} {
		r := newRequest(t, []ir.Variable{{Name: "v", Split: of}}, map[string]string{"key": key})
		if got := r.value("v"); got != want {
			t.Errorf("%q has %q, want %q", key, got, want)
		}
	}
	of = &ir.SplitClients{Parts: []ir.SplitPart{{Share: 10}}}
	if got := newRequest(t, []ir.Variable{{Name: "v", Split: of}}, nil).value("v"); got != "" {
		t.Errorf("a key without a share has %q", got)
	}
}

// TestOnce checks that a value is computed once for a request, and when it is used.
func TestOnce(t *testing.T) {
	all := []ir.Variable{
		{Name: "outer", Map: &ir.Map{Source: "$inner", Default: "$inner$inner"}},
		{Name: "inner", Map: &ir.Map{Source: "$host", Default: "replaced"}},
		{Name: "inner", Map: &ir.Map{Source: "$host", Default: "<$uri>"}},
		{Name: "each", Map: &ir.Map{Source: "$host", Default: "$uri", Volatile: true}},
	}
	r := newRequest(t, all, map[string]string{"uri": "/a"})
	if len(r.computed) != 0 || r.value("each") != "/a" || r.value("outer") != "</a></a>" || r.value("inner") != "</a>" {
		t.Errorf("the values are %q and %q", r.value("outer"), r.value("inner"))
	}
	r.others["uri"] = "/b"
	if r.value("outer") != "</a></a>" || r.value("each") != "/b" || r.computed["host"] != 3 {
		t.Errorf("the values are %q and %q, and $host was read %d times", r.value("outer"), r.value("each"),
			r.computed["host"])
	}
}

// TestChainOfVolatile checks that variables that use another volatile variable several times need no more work than
// one use of each variable, and that the next use computes them again.
func TestChainOfVolatile(t *testing.T) {
	const last = 40
	all := []ir.Variable{{Name: "v0", Map: &ir.Map{Source: "$host$host", Default: "$uri", Volatile: true}}}
	for i := range last {
		one := fmt.Sprintf("$v%d", i)
		all = append(all, ir.Variable{Name: fmt.Sprintf("v%d", i+1), Map: &ir.Map{Source: one + one, Default: one,
			Exact: map[string]string{"never": "a"}, Volatile: true}})
	}
	r := newRequest(t, all, map[string]string{"uri": "/a", "host": "shop"})
	for i, uri := range []string{"/a", "/b", "/c"} {
		r.others["uri"] = uri
		got, reads := r.value(fmt.Sprintf("v%d", last)), r.computed["uri"]
		if got != uri || reads != i+1 || r.values.Failed() != nil {
			t.Fatalf("the value is %q, and $uri was read %d times", got, reads)
		}
	}
}

// TestCycle checks that variables that depend on each other end.
func TestCycle(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		r := newRequest(t, []ir.Variable{
			{Name: "a", Map: &ir.Map{Source: "$b", Default: "a$b", Volatile: volatile}},
			{Name: "b", Map: &ir.Map{Source: "$a", Default: "b$a", Volatile: volatile}},
		}, nil)
		if got := r.value("a"); len(got) > 10 {
			t.Errorf("the value is %q", got)
		}
	}
}

// TestFailures checks that a request fails if a value cannot be computed within the limits.
func TestFailures(t *testing.T) {
	long := strings.Repeat("a", 60<<10)
	var chain []ir.Variable
	for i := range 20 {
		name := fmt.Sprintf("v%d", i+1)
		chain = append(chain, ir.Variable{Name: name, Map: &ir.Map{Source: "", Default: fmt.Sprintf("$v%d$v%d", i, i)}})
	}
	for name, c := range map[string]struct {
		all    []ir.Variable
		use    string
		status int
	}{
		"a long search": {[]ir.Variable{{Name: "v", Map: &ir.Map{Source: "$long", Default: "safe",
			Patterns: []ir.MapPattern{
				{Pattern: "(a|b|ab|aa|aab)*x$", Value: "bad"}}}}}, "v", http.StatusBadRequest},
		"a value of values": {chain, "v20", http.StatusInternalServerError},
	} {
		r := newRequest(t, c.all, map[string]string{"long": long, "v0": "abcdefgh"})
		if got, failed := r.value(c.use), r.values.Failed(); got != "" || failed == nil || failed.Status != c.status {
			t.Errorf("%s: the value has %d bytes, and the error is %v", name, len(got), failed)
		}
	}
}

// TestInvalid checks that invalid variables are rejected, and that requests that use one of them fail.
func TestInvalid(t *testing.T) {
	a, b, six := netip.MustParseAddr("10.0.0.0"), netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("::1")
	hosts := func(names ...string) *ir.Map {
		m := &ir.Map{Hostnames: true, Exact: map[string]string{}}
		for _, name := range names {
			m.Exact[name] = "x"
		}
		return m
	}
	for name, of := range map[string]ir.Variable{
		"nothing": {}, "two kinds": {Map: &ir.Map{}, Geo: &ir.Geo{}},
		"a source":             {Map: &ir.Map{Source: "${"}},
		"a default":            {Map: &ir.Map{Default: "$"}},
		"a value":              {Map: &ir.Map{Exact: map[string]string{"a": "${"}}},
		"a value of a pattern": {Map: &ir.Map{Patterns: []ir.MapPattern{{Pattern: "a", Value: "$"}}}},
		"a pattern":            {Map: &ir.Map{Patterns: []ir.MapPattern{{Pattern: "(?=a)"}}}},
		"the same text":        {Map: &ir.Map{Exact: map[string]string{"a": "1", "A": "2"}}},
		"the same name":        {Map: hosts(".a.example", "*.a.example")},
		"two asterisks":        {Map: hosts("*.a.*")},
		"an asterisk inside":   {Map: hosts("a.*.example")},
		"a part of a label":    {Map: hosts("*a.example")},
		"two dots":             {Map: hosts("a..example")},
		"a long name":          {Map: hosts(strings.Repeat("a", 256))},
		"a range":              {Geo: &ir.Geo{Ranges: []ir.GeoRange{{First: b, Last: a}}}},
		"a range of two kinds": {Geo: &ir.Geo{Ranges: []ir.GeoRange{{First: a, Last: six}}}},
		"a range without end":  {Geo: &ir.Geo{Ranges: []ir.GeoRange{{First: a}}}},
		"the same range":       {Geo: &ir.Geo{Ranges: []ir.GeoRange{{First: a, Last: b}, {First: a, Last: b}}}},
		"overlapping ranges": {Geo: &ir.Geo{Ranges: []ir.GeoRange{
			{First: a, Last: b}, {First: a.Next(), Last: b.Next()},
		}}},
		"more than all":      {Split: &ir.SplitClients{Parts: []ir.SplitPart{{Share: 9999}, {Share: 2}}}},
		"more than the rest": {Split: &ir.SplitClients{Parts: []ir.SplitPart{{}, {Share: 2}}}},
		"a negative share":   {Split: &ir.SplitClients{Parts: []ir.SplitPart{{Share: -1}}}},
	} {
		of.Name = "v"
		set, err := variables.New([]ir.Variable{of})
		if err == nil || !strings.Contains(err.Error(), "$v") {
			t.Errorf("%s: the error is %v", name, err)
		}
		r := &request{set: set, computed: map[string]int{}}
		if got := r.value("v"); got != "" || r.values.Failed() == nil {
			t.Errorf("%s: the request does not fail, and the value is %q", name, got)
		}
	}
}
