package substitute_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/http/substitute"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

// pairs are texts with their replacements, one after the other.
type pairs []string

func (p pairs) split() (texts []string, replacements [][]byte) {
	for pair := range slices.Chunk(p, 2) {
		texts, replacements = append(texts, pair[0]), append(replacements, []byte(pair[1]))
	}
	return texts, replacements
}

// replaced returns body with the texts replaced. It tries each text at each position.
func (p pairs) replaced(body string, repeat bool) string {
	texts, replacements := p.split()
	for i, text := range texts {
		texts[i] = lower(text)
	}
	used := make([]bool, len(texts))
	var out strings.Builder
next:
	for at, folded := 0, lower(body); at < len(body); {
		for i, text := range texts {
			if !used[i] && strings.HasPrefix(folded[at:], text) {
				used[i] = !repeat
				out.Write(replacements[i])
				at += len(text)
				continue next
			}
		}
		out.WriteByte(body[at])
		at++
	}
	return out.String()
}

// lower changes only ASCII letters.
func lower(text string) string {
	folded := []byte(text)
	for i, c := range folded {
		if 'A' <= c && c <= 'Z' {
			folded[i] += 'a' - 'A'
		}
	}
	return string(folded)
}

// response returns a Writer that replaces the texts of p, and the response that it writes.
func (p pairs) response(repeat bool, length int64) (*substitute.Writer, *exchangetest.Recorder) {
	texts, replacements := p.split()
	out := &exchangetest.Recorder{}
	w := substitute.NewWriter(out)
	w.Begin(substitute.NewTexts(texts), replacements, repeat, length)
	return &w, out
}

// write writes a body in parts, and returns what the client gets.
func (p pairs) write(t testing.TB, repeat bool, parts ...string) string {
	t.Helper()
	w, out := p.response(repeat, -1)
	for _, part := range parts {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("Write returns %d, %v", n, err)
		}
	}
	if err := w.End(false); err != nil {
		t.Error(err)
	}
	return out.Body.String()
}

var bodies = []struct {
	name       string
	pairs      pairs
	body       string
	once, many string
}{
	{"a stylesheet", pairs{"</head>", "<link></head>"}, "<html><HEAD></HEAD></head>",
		"<html><HEAD><link></head></head>", "<html><HEAD><link></head><link></head>"},
	{"nothing", pairs{"b", "x"}, "aaaa", "aaaa", "aaaa"},
	{"nothing left", pairs{"ab", ""}, "abab", "ab", ""},
	{"the end", pairs{"ab", "x"}, "aaab", "aax", "aax"},
	{"the beginning of a text at the end", pairs{"abc", "x"}, "abcabab", "xabab", "xabab"},
	{"an overlap", pairs{"aa", "x"}, "aaaaa", "xaaa", "xxa"},
	{"a failed attempt", pairs{"aab", "x"}, "aaab", "ax", "ax"},
	{"the replacement is not searched", pairs{"a", "aa", "aa", "b"}, "aaa", "aab", "aaaaaa"},
	{"the leftmost text", pairs{"bc", "x", "ab", "y"}, "abc bc", "yc x", "yc x"},
	{"the first text of the list", pairs{"ab", "x", "abc", "y"}, "abcabc", "xcy", "xcxc"},
	{"the longer text is the first", pairs{"abc", "y", "ab", "x"}, "abcabd", "yxd", "yxd"},
	{"a part of a text", pairs{"abcd", "x", "bc", "y"}, "abce bc", "aye bc", "aye y"},
	{"a part at the end", pairs{"abcd", "x", "bc", "y"}, "abc", "ay", "ay"},
	{"the beginning at the end", pairs{"abcd", "x", "ab", "y"}, "zab", "zy", "zy"},
	{"a longer text that fails", pairs{"aaaab", "x", "a", "y"}, "aaacaaaab", "yaacx", "yyycx"},
	{"equal texts", pairs{"a", "1", "A", "2"}, "aaa", "12a", "111"},
	{"equal texts after a longer one", pairs{"aaaab", "x", "a", "1", "a", "2"}, "aaac", "12ac", "111c"},
	{"a text that is used up", pairs{"abab", "x", "ab", "y", "b", "z"}, "abcababab", "ycxaz", "ycxy"},
	{"bytes", pairs{"\xff\x00", "é", "Ä", "ä"}, "\xff\x00äÄ", "éää", "éää"},
	{"no letters", pairs{"[`", "x", "@", "y"}, "{`[`@`", "{`xy`", "{`xy`"},
	{"many first bytes", pairs{"a1", "b", "b1", "c", "c1", "d", "d1", "e"}, "xA1B1c1d1", "xbcde", "xbcde"},
	{"no body", pairs{"a", "b"}, "", "", ""},
}

// TestReplace writes each body whole, and divided at each one and each two positions.
func TestReplace(t *testing.T) {
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			for repeat, want := range map[bool]string{false: c.once, true: c.many} {
				if got := c.pairs.replaced(c.body, repeat); got != want {
					t.Fatalf("repeat %t: the reference is %q, want %q", repeat, got, want)
				}
				for i := range len(c.body) + 1 {
					for j := i; j <= len(c.body); j++ {
						parts := []string{c.body[:i], c.body[i:j], c.body[j:]}
						if got := c.pairs.write(t, repeat, parts...); got != want {
							t.Fatalf("repeat %t: %q becomes %q, want %q", repeat, parts, got, want)
						}
					}
				}
			}
		})
	}
}

// TestLongTexts checks texts of the maximum length, and parts around the sizes of the buffers.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("a", substitute.MaxText)
	p := pairs{long[1:] + "b", "x", long, "y", "aa", "z"}
	for _, body := range []string{
		long, long + long, long[1:] + "b", long + "b" + long, long[2:], strings.Repeat(long[1:]+"c", 5),
		strings.Repeat("-", 20<<10) + long + strings.Repeat("-", 20<<10),
	} {
		for _, repeat := range []bool{false, true} {
			want := p.replaced(body, repeat)
			for _, size := range []int{7, 4095, 4096, 16 << 10, 1 << 20} {
				if got := p.write(t, repeat, cut(body, size)...); got != want {
					t.Errorf("repeat %t, a body of %d bytes in parts of %d: %d bytes, want %d", repeat, len(body), size,
						len(got), len(want))
				}
			}
		}
	}
}

// cut divides a body into parts of size bytes.
func cut(body string, size int) (parts []string) {
	for ; len(body) > size; body = body[size:] {
		parts = append(parts, body[:size])
	}
	return append(parts, body)
}

// TestManyTexts checks the maximum number of texts.
func TestManyTexts(t *testing.T) {
	var p pairs
	var body strings.Builder
	for i := range substitute.MaxTexts {
		p = append(p, fmt.Sprintf("<%d>", i), fmt.Sprintf("%d.", i))
		fmt.Fprintf(&body, "<%d><%d>", i, i)
	}
	for _, repeat := range []bool{false, true} {
		if got, want := p.write(t, repeat, cut(body.String(), 100)...), p.replaced(body.String(), repeat); got != want {
			t.Errorf("repeat %t: %q, want %q", repeat, got, want)
		}
	}
}

// TestHeld checks that only the beginning of a text is held between two writes.
func TestHeld(t *testing.T) {
	w, out := pairs{"abcd", "x", "bcx", "y"}.response(true, -1)
	for _, step := range []struct{ write, sent string }{
		{"1a", "1"}, {"b", "1"}, {"c", "1"}, {"e2b", "1abce2"}, {"c3ab", "1abce2bc3"}, {"cd", "1abce2bc3x"},
		{"abcx", "1abce2bc3xay"},
	} {
		if _, err := w.Write([]byte(step.write)); err != nil || out.Body.String() != step.sent {
			t.Errorf("after %q: %q, %v, want %q", step.write, out.Body.String(), err, step.sent)
		}
	}
}

// TestReadFrom checks bodies that the Writer reads itself, in parts and with errors.
func TestReadFrom(t *testing.T) {
	failed := errors.New("read")
	for name, c := range map[string]struct {
		repeat bool
		source io.Reader
		sent   string
		err    error
	}{
		"whole":            {true, strings.NewReader("1abc2abc3ab"), "1x2x3ab", nil},
		"by bytes":         {true, iotest.OneByteReader(strings.NewReader("1abc2abc3ab")), "1x2x3ab", nil},
		"once":             {false, iotest.OneByteReader(strings.NewReader("1abc2abc3ab")), "1x2abc3ab", nil},
		"with the end":     {true, iotest.DataErrReader(strings.NewReader("1abc2ab")), "1x2ab", nil},
		"a failed read":    {true, failing("1abc2ab", failed), "1x2", failed},
		"failed after all": {false, failing("1abc2ab", failed), "1x2ab", failed},
	} {
		t.Run(name, func(t *testing.T) {
			w, out := pairs{"abc", "x"}.response(c.repeat, -1)
			_, err := w.ReadFrom(c.source)
			if !errors.Is(err, c.err) {
				t.Errorf("ReadFrom returns %v, want %v", err, c.err)
			}
			if err := w.End(err != nil); err != nil || out.Body.String() != c.sent {
				t.Errorf("the client gets %q, %v, want %q", out.Body.String(), err, c.sent)
			}
		})
	}
}

// failing returns a reader that returns err after the data.
func failing(data string, err error) io.Reader {
	return io.MultiReader(strings.NewReader(data), iotest.ErrReader(err))
}

// trailers is a response with trailer fields.
type trailers struct {
	exchangetest.Recorder
	// before is the body before the trailer fields. failing is the error of the next Write.
	before  string
	failing error
	aborted bool
}

func (r *trailers) Trailer(message.Fields) error {
	r.before = r.Body.String()
	return nil
}

func (r *trailers) Write(part []byte) (int, error) {
	if r.failing != nil {
		return 0, r.failing
	}
	return r.Recorder.Write(part)
}

func (r *trailers) Abort() { r.aborted = true }

func (r *trailers) writer(length int64) *substitute.Writer {
	w := substitute.NewWriter(r)
	w.Begin(substitute.NewTexts([]string{"abc"}), [][]byte{[]byte("x")}, true, length)
	return &w
}

// TestTrailer checks that the held bytes are written before the trailer fields.
func TestTrailer(t *testing.T) {
	out := &trailers{}
	w := out.writer(-1)
	if _, err := w.Write([]byte("abcab")); err != nil {
		t.Fatal(err)
	}
	if err := w.Trailer(nil); err != nil || out.before != "xab" {
		t.Errorf("before the trailer fields: %q, %v", out.before, err)
	}
	if err := w.End(false); err != nil || out.Body.String() != "xab" {
		t.Errorf("at the end: %q, %v", out.Body.String(), err)
	}
}

// TestLength checks that bodies are rejected whose length differs from their Content-Length, which the client does not
// get.
func TestLength(t *testing.T) {
	for body, ok := range map[string]bool{"abc": false, "abca": true, "xxxx": true, "abcabc": false} {
		for _, once := range []bool{false, true} {
			texts, replacements := pairs{"a", "long"}.split()
			w := substitute.NewWriter(&exchangetest.Recorder{})
			w.Begin(substitute.NewTexts(texts), replacements, !once, 4)
			_, err := w.Write([]byte(body))
			if err == nil {
				err = w.End(false)
			}
			if ok != (err == nil) {
				t.Errorf("%q, once %t: %v", body, once, err)
			}
		}
	}
}

// TestFailures checks responses that end early.
func TestFailures(t *testing.T) {
	gone := errors.New("the client has disconnected")
	for name, c := range map[string]struct {
		end     func(w *substitute.Writer, out *trailers) error
		sent    string
		err     error
		aborted bool
	}{
		"the endpoint fails": {func(w *substitute.Writer, _ *trailers) error { return w.End(true) }, "x", nil, false},
		"aborted": {func(w *substitute.Writer, _ *trailers) error {
			w.Abort()
			return w.End(true)
		}, "x", nil, true},
		"the client has gone": {func(w *substitute.Writer, out *trailers) error {
			out.failing = gone
			return w.End(false)
		}, "x", gone, false},
		"the client goes in a write": {func(w *substitute.Writer, out *trailers) error {
			out.failing = gone
			_, err := w.Write([]byte("c"))
			_ = w.End(true)
			return err
		}, "x", gone, false},
	} {
		t.Run(name, func(t *testing.T) {
			out := &trailers{}
			w := out.writer(-1)
			if _, err := w.Write([]byte("abcab")); err != nil {
				t.Fatal(err)
			}
			if err := c.end(w, out); !errors.Is(err, c.err) || out.Body.String() != c.sent || out.aborted != c.aborted {
				t.Errorf("the client gets %q, %v, %t", out.Body.String(), err, out.aborted)
			}
			out.failing = nil
			if _, err := w.Write([]byte("more")); err == nil {
				t.Error("Write works after the end")
			}
			if _, err := w.ReadFrom(strings.NewReader("more")); err == nil {
				t.Error("ReadFrom works after the end")
			}
		})
	}
}

// TestUnchanged checks that a Writer without Begin passes everything on, even after End: the response to a failed
// request may follow then.
func TestUnchanged(t *testing.T) {
	out := &exchangetest.Recorder{}
	w := substitute.NewWriter(out)
	if err := w.End(true); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write([]byte("a"))
	_, failed := w.ReadFrom(strings.NewReader("b"))
	if err := errors.Join(err, failed, w.End(false)); err != nil || out.Body.String() != "ab" {
		t.Errorf("the client gets %q, %v", out.Body.String(), err)
	}
}

// FuzzReplace compares Writer with the reference, for a body that is divided at random.
func FuzzReplace(f *testing.F) {
	for i, c := range bodies {
		f.Add(strings.Join(c.pairs, "|"), c.body, uint64(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, list, body string, seed uint64, repeat bool) {
		var p pairs
		for text := range strings.SplitSeq(list, "|") {
			if text != "" && len(text) <= substitute.MaxText && len(p) < 2*substitute.MaxTexts {
				p = append(p, text, fmt.Sprintf("<%d>", len(p)))
			}
		}
		if len(p) == 0 {
			return
		}
		random, parts := rand.New(rand.NewPCG(seed, 0)), []string(nil)
		for rest := body; rest != ""; {
			n := 1 + random.IntN(len(rest))
			if random.IntN(2) == 0 {
				n = min(n, 3)
			}
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		if got, want := p.write(t, repeat, parts...), p.replaced(body, repeat); got != want {
			t.Errorf("%q in %q, repeat %t: %q, want %q", p, parts, repeat, got, want)
		}
	})
}
