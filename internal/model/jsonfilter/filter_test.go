package jsonfilter_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/model/jsonfilter"
)

// shape is a shape of a filter whose parts are appended to a list.
type shape = jsonfilter.Shape[*[]string]

var whole = &shape{}

func take(to *[]string, text []byte) error {
	*to = append(*to, string(text))
	return nil
}

// example is a shape that has all kinds of shapes.
var example = &shape{Fields: []jsonfilter.Field[*[]string]{
	{Name: "kind", Shape: whole},
	{Name: "labels", Shape: &shape{Members: &shape{Take: take}}},
	{Name: "rules", Shape: &shape{Elements: &shape{Take: take, Fields: []jsonfilter.Field[*[]string]{
		{Name: "host", Shape: whole}, {Name: "paths", Shape: &shape{Elements: &shape{Take: take}}},
	}}}},
}}

var ample = jsonfilter.Limits{Depth: 100, Values: 1 << 20, Part: 1 << 20}

// filter filters a text in pieces of the given size.
func filter(text []byte, size int, l jsonfilter.Limits) (kept string, parts []string, err error) {
	f := jsonfilter.New(example, &parts, l)
	for piece := range slices.Chunk(text, size) {
		// The filter must not keep a reference to a piece.
		own := bytes.Clone(piece)
		if _, err := f.Write(own); err != nil {
			return "", nil, err
		}
		clear(own)
	}
	rest, err := f.End()
	return string(rest), parts, err
}

// TestFilter checks what is kept, and which parts are taken in which order, for pieces of all sizes.
func TestFilter(t *testing.T) {
	for text, want := range map[string][]string{
		`{"kind":"A","status":{"kind":[1,{"a":"}"}]},"more":-1.5e+7}`: {`{"kind":"A"}`},
		`{"skipped":[{},[]],"KIND":{"kind":"b","c":[1]}}`:             {`{"KIND":{"kind":"b","c":[1]}}`},
		`{"labels":{"a\"":"b","c" : {"d":[]}},"kind":1,"z":0}`: {
			`{"labels":{},"kind":1}`, `{"a\"":"b"}`, `{"c" : {"d":[]}}`,
		},
		`{"rules":[{"x":1,"host":"h","paths":[1,"p",{"q":2}],"y":{}},null,{}]}`: {
			`{"rules":[]}`, `1`, `"p"`, `{"q":2}`, `{"host":"h","paths":[]}`, `null`, `{}`,
		},
		`{"labels":["x"],"rules":{"host":1}}`: {`{"labels":["x"],"rules":{"host":1}}`},
		"[\t1, 2]":                            {"[\t1, 2]"},
		"\n\"\\u00e9\\n\" ":                   {`"\u00e9\n"`},
		" 12 ":                                {"12"},
		"true":                                {"true"},
	} {
		for size := range len(text) {
			kept, parts, err := filter([]byte(text), size+1, ample)
			if got := append([]string{kept}, parts...); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s in pieces of %d bytes: %q, %v; want %q", text, size+1, got, err, want)
				break
			}
		}
	}
}

// TestRefused checks texts that encoding/json accepts, but whose meaning depends on the reader.
func TestRefused(t *testing.T) {
	for text, fault := range map[string]string{
		`{"kind":1,"kind":2}`:                         "more than once",
		`{"kind":1,"x":3,"Kind":2}`:                   "more than once",
		`{"rules":[{"host":1,"HOST":1}]}`:             "more than once",
		`{"\u006bind":1}`:                             "with escapes",
		`{"` + strings.Repeat("x", 80) + `\u006b":1}`: "with escapes",
		`{"` + "\u212a" + `ind":1}`:                   "outside ASCII",
	} {
		_, _, err := filter([]byte(text), 3, ample)
		var wrong *jsonfilter.FieldError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), fault) || len(err.Error()) > 150 {
			t.Errorf("%s: %v", text, err)
		}
	}
	// What is skipped or kept as a whole may have such fields.
	const text = `{"x":{"kind":1,"kind":2,"\u006b":3},"labels":{"a":1,"a":2}}`
	if _, parts, err := filter([]byte(text), 7, ample); err != nil || len(parts) != 2 {
		t.Error(parts, err)
	}
}

// TestLimits checks that each limit is exact, also for values that are not kept.
func TestLimits(t *testing.T) {
	for text, c := range map[string]struct {
		limits jsonfilter.Limits
		err    error
	}{
		`{"x":[[]]}`:         {jsonfilter.Limits{Depth: 3, Values: 100, Part: 100}, jsonfilter.ErrDepth},
		`{"x":[1,2],"y":1}`:  {jsonfilter.Limits{Depth: 100, Values: 4, Part: 100}, jsonfilter.ErrValues},
		`{"kind":"1234567"}`: {jsonfilter.Limits{Depth: 100, Values: 100, Part: 18}, jsonfilter.ErrPart},
	} {
		if _, _, err := filter([]byte(text), 4, c.limits); err != nil {
			t.Errorf("%s at the limit: %v", text, err)
		}
		for _, lower := range []*int{&c.limits.Depth, &c.limits.Values, &c.limits.Part} {
			if *lower != 100 {
				*lower--
			}
		}
		if _, _, err := filter([]byte(text), 4, c.limits); !errors.Is(err, c.err) {
			t.Errorf("%s above the limit: %v", text, err)
		}
	}
	// Elements and members do not add up.
	text := `{"labels":{"a":"b"` + strings.Repeat(`,"a":"b"`, 1000) + `},"skipped":"` + strings.Repeat("x", 1000) + `"}`
	if _, parts, err := filter([]byte(text), 64, jsonfilter.Limits{Depth: 9, Values: 2000, Part: 64}); err != nil ||
		len(parts) != 1001 {
		t.Error(len(parts), err)
	}
}

// FuzzFilter checks that a filter accepts the texts that encoding/json accepts, that what it keeps is valid, and that
// the size of the pieces makes no difference.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{
		`{"kind":"A","labels":{"a":"b\u00e9"},"rules":[{"host":"h","paths":[1,{}]}],"x":[-0.1e-9,true,false,null]}`,
		`{"kind":1,"KIND":2}`, `{"\u006bind":1}`, `[1,]`, `[01]`, `-`, `1e`, `"\u12g4"`, "\"\x01\"", "\"\xff\"", `nul`,
		`{"a":1,}`, `{"a" 1}`, `[}`, ` `, `1 2`, `{"labels":{"a":[{"b":"\\"}]}}`,
	} {
		f.Add([]byte(text), 1)
		f.Add([]byte(text), 5)
	}
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = 1 + max(size, -size, 0)%64
		kept, parts, err := filter(text, size, ample)
		var field *jsonfilter.FieldError
		if errors.As(err, &field) || errors.Is(err, jsonfilter.ErrDepth) {
			return
		}
		if valid := json.Valid(text); valid != (err == nil) {
			t.Fatalf("%q is valid: %v, but the filter says %v", text, valid, err)
		}
		for _, each := range append(parts, kept) {
			if err == nil && !json.Valid([]byte(each)) {
				t.Errorf("%q keeps %q", text, each)
			}
		}
		again, alike, err2 := filter(text, len(text)+1, ample)
		if kept != again || !slices.Equal(parts, alike) || (err == nil) != (err2 == nil) {
			t.Errorf("%q in one piece: %q, %q, %v; in pieces of %d bytes: %q, %q, %v", text, again, alike, err2, size,
				kept, parts, err)
		}
	})
}

// BenchmarkFilter filters a text of 9 MiB in which nothing is kept.
func BenchmarkFilter(b *testing.B) {
	const field = `{"manager":"0123456789012345678901234567890123456789012345678"},`
	text := []byte(`{"managedFields":[` + strings.Repeat(field, 9<<20/len(field)) + `{}]}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if kept, _, err := filter(text, 32<<10, ample); kept != "{}" || err != nil {
			b.Fatal(kept, err)
		}
	}
}
