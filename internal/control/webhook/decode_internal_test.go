package webhook

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzDecode checks that any body either gets an error for its author, or has the object that a review needs, and that
// the number of its values is never underestimated.
func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile("testdata/review.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good))
	f.Add(strings.Replace(string(good), `"v1"`, `"v1beta1"`, 1))
	f.Add(`{"request":` + strings.Repeat(`[`, 200))
	f.Add(`{"a":"\\","b":"\"[[[,,,"}`)
	f.Fuzz(func(t *testing.T, text string) {
		values, err := scan([]byte(text))
		if err != nil {
			return
		}
		var value any
		if json.Unmarshal([]byte(text), &value) == nil {
			if got := count(value); got > values+1 {
				t.Errorf("%q has %d values, and scan counts %d", text, got, values)
			}
		}
		r, err := decode([]byte(text))
		if err != nil {
			if got := (*refused)(nil); !errors.As(err, &got) || got.status != 400 || len(got.text) > 1000 {
				t.Errorf("%v", err)
			}
			return
		}
		if r.reviewable() && r.Object.ingress() == nil {
			t.Errorf("%q has no object", text)
		}
		r.OldObject.ingress()
	})
}

// count returns the number of objects, lists and their elements in a value, without those that hold a single value.
func count(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		n = max(len(v), 1)
		for _, each := range v {
			n += count(each)
		}
	case []any:
		n = max(len(v), 1)
		for _, each := range v {
			n += count(each)
		}
	}
	return n
}
