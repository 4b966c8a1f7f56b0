package webhook

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// decodeIn decodes a body that is read in pieces of the given size.
func decodeIn(text string, size int) (*request, *decoder, error) {
	d := newDecoder(&work{})
	for piece := range slices.Chunk([]byte(text), size) {
		if err := d.write(piece); err != nil {
			return nil, d, err
		}
	}
	r, err := d.end()
	return r, d, err
}

// decodeWhole decodes a body with encoding/json alone.
func decodeWhole(text string) (*request, error) {
	b := &body{}
	var wrong *json.UnmarshalTypeError
	if err := json.Unmarshal([]byte(text), b); err != nil && !errors.As(err, &wrong) {
		return nil, bad("%v", err)
	}
	return b.review(wrong)
}

// FuzzDecode checks that a body that is filtered while it is read gives the same review as with encoding/json alone,
// and that any error has a short text for the author of the body. The filter may only refuse more.
func FuzzDecode(f *testing.F) {
	good, err := os.ReadFile("testdata/review.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{
		string(good),
		strings.Replace(string(good), `"v1"`, `"v1beta1"`, 1),
		strings.Replace(string(good), `"a.example"`, `7`, 1),
		strings.Replace(string(good), `"rules": [`,
			`"tls": [{"hosts": ["a", null], "secretName": "s"}, null], "rules": [null,`, 1),
		strings.Replace(string(good), `"object"`, `"OBJECT"`, 1),
		strings.Replace(string(good), `"object"`, `"\u006fbject"`, 1),
		strings.Replace(string(good), `"object": {`, `"Object": {}, "object": {`, 1),
		strings.Replace(string(good), `"5"`, `"5", "a": null, "b": "\u003c\ud83d\ude00", "b": "2"`, 1),
		`{"request":` + strings.Repeat(`[`, 200), `{"a":"\\","b":"\"[[[,,,"}`,
	} {
		f.Add(text, 1)
		f.Add(text, 1000)
	}
	f.Fuzz(func(t *testing.T, text string, size int) {
		r, d, err := decodeIn(text, 1+max(size, -size, 0)%1000)
		if err != nil {
			if got := (*refused)(nil); !errors.As(err, &got) || got.status != 400 || len(got.text) > 1000 {
				t.Errorf("%v", err)
			}
			if strings.Contains(err.Error(), "ambiguous") || strings.Contains(err.Error(), "nested deeper") {
				return
			}
		}
		want, whole := decodeWhole(text)
		if diff := cmp.Diff(want, r); diff != "" || (whole == nil) != (err == nil) {
			t.Errorf("%q: the review differs: %v, want %v\n%s", text, err, whole, diff)
		}
		if err == nil && r.reviewable() && r.Object.ingress() == nil {
			t.Errorf("%q has no object", text)
		}
		if _, values := d.filter.Kept(); values < d.object.elements()+d.old.elements() {
			t.Errorf("%q: memory is reserved for %d values, but there are more", text, values)
		}
	})
}

// elements returns the number of elements and annotations of an Ingress.
func (p *parts) elements() int {
	n := len(p.annotations) + len(p.rules) + len(p.tls)
	for _, rule := range p.rules {
		if rule.HTTP != nil {
			n += len(rule.HTTP.Paths)
		}
	}
	for _, tls := range p.tls {
		n += len(tls.Hosts)
	}
	return n
}
