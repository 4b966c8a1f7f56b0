package http1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

// decode decodes a body that arrives in pieces of the given length. It returns the body, its trailers and the text
// after it.
func decode(text string, piece int) (body, trailers, rest string, err error) {
	var d http1.Decoder
	in := []byte(text)
	var out strings.Builder
	for len(in) > 0 {
		now := in[:min(piece, len(in))]
		for len(now) > 0 {
			data, n, done, err := d.Next(now)
			if err != nil {
				return out.String(), "", string(in), err
			}
			out.Write(data)
			now, in = now[n:], in[n:]
			if done {
				var b strings.Builder
				for _, f := range d.Trailers() {
					b.WriteString(f.Name + "=" + f.Value + " ")
				}
				return out.String(), b.String(), string(in), nil
			}
		}
	}
	return out.String(), "", "", errMore
}

func TestChunks(t *testing.T) {
	for _, c := range []struct{ name, text, body, trailers string }{
		{"none", "0\r\n\r\n", "", ""},
		{"one", "5\r\nhello\r\n0\r\n\r\n", "hello", ""},
		{"several", "A\r\n0123456789\r\n01;x=\"y\"\r\na\r\n00\r\n\r\n", "0123456789a", ""},
		{"spaces", "5 \t\r\nhello\r\n0 ;x\r\n\r\n", "hello", ""},
		{"trailers", "1\r\na\r\n0\r\nX-A: 1\r\nx-b:2\r\n\r\n", "a", "X-A=1 x-b=2 "},
		{"trailers that are for the front",
			"0\r\nssl-client-verify: SUCCESS\r\nX-Forwarded-For: 6\r\nHost: e\r\nConnection: " +
				"x\r\nContent-Length: 1\r\n" +
				"X_a: 1\r\nCookie: a\r\nok: 1\r\n\r\n", "", "ok=1 "},
	} {
		for piece := 1; piece <= len(c.text)+4; piece++ {
			body, trailers, rest, err := decode(c.text+"rest", piece)
			if err != nil || body != c.body || trailers != c.trailers || rest != "rest" {
				t.Fatalf("%s in pieces of %d: %q, %q, %q, %v", c.name, piece, body, trailers, rest, err)
			}
		}
	}
}

// TestChunksLimited checks that a body that exceeds the limit is rejected before its data arrives, and that a body of
// exactly the maximum size is accepted.
func TestChunksLimited(t *testing.T) {
	for text, refused := range map[string]bool{
		"a\r\n": false, "b\r\n": true, "5\r\nhello\r\n5\r\n": false, "5\r\nhello\r\n6\r\n": true,
		"fffffffffffffff\r\n":                   true,
		"9\r\nhello you\r\nfffffffffffffff\r\n": true, "a\r\nhello you!\r\n0\r\n": false,
	} {
		var d http1.Decoder
		d.Limit(10)
		var err error
		for in := []byte(text); len(in) > 0 && err == nil; {
			var n int
			_, n, _, err = d.Next(in)
			in = in[n:]
		}
		var reason *http1.Error
		if errors.As(err, &reason) != refused || refused &&
			(reason.Status != 413 || reason.Reason != "body-too-large") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestChunksRefused(t *testing.T) {
	for _, c := range []struct{ name, text, reason string }{
		{"no size", "\r\n", "chunk-size"},
		{"extension alone", ";x\r\n", "chunk-size"},
		{"sign", "+5\r\nhello\r\n", "chunk-size"},
		{"negative", "-5\r\nhello\r\n", "chunk-size"},
		{"prefix", "0x5\r\nhello\r\n", "chunk-size"},
		{"space in front", " 5\r\nhello\r\n", "chunk-size"},
		{"two sizes", "5 5\r\nhello\r\n", "chunk-size"},
		{"letter", "5g\r\n", "chunk-size"},
		{"large", "1000000000000000\r\n", "chunk-size"},
		{"many zeros", "0000000000000005\r\n", "chunk-size"},
		{"bare LF", "5\nhello\r\n", "chunk-line"},
		{"bare CR", "5\rhello\r\n", "chunk-line"},
		{"LF in extension", "5;x\nhello\r\n", "chunk-line"},
		{"CR in extension", "5;x\ry\r\nhello\r\n", "chunk-line"},
		{"NUL in extension", "5;\x00\r\nhello\r\n", "chunk-line"},
		{"long extension", "5;" + strings.Repeat("x", 17<<10) + "\r\n", "chunk-extensions"},
		{"extensions", strings.Repeat("1;"+strings.Repeat("x", 1<<10)+"\r\na\r\n", 20), "chunk-extensions"},
		{"data too long", "5\r\nhelloX\r\n", "chunk-end"},
		{"LF behind data", "5\r\nhello\n0\r\n\r\n", "chunk-end"},
		{"CR behind data", "5\r\nhello\rX", "chunk-end"},
		{"bare LF at the end", "0\r\n\nGET /", "bare-lf"},
		{"bare LF in trailers", "0\r\nA: b\nGET /", "bare-lf"},
		{"folded trailer", "0\r\nA: b\r\n c\r\n\r\n", "folded-line"},
		{"trailer without name", "0\r\n: b\r\n\r\n", "field-name"},
		{"long trailers", "0\r\n" + strings.Repeat("A: b\r\n", 2000), "trailers-too-large"},
		{"one long trailer", "0\r\n" + strings.Repeat("A", 9000), "trailers-too-large"},
	} {
		for _, piece := range []int{1, 3, 1 << 20} {
			_, _, _, err := decode(c.text, piece)
			var e *http1.Error
			if !errors.As(err, &e) || e.Reason != c.reason {
				t.Errorf("%s in pieces of %d: %v, want %s", c.name, piece, err, c.reason)
			}
		}
	}
}

// TestChunksThereAndBack checks that written chunks can be read.
func TestChunksThereAndBack(t *testing.T) {
	for _, size := range []int{1, 15, 16, 255, 4096, 70000} {
		data := strings.Repeat("x", size)
		text := http1.AppendChunkHead(nil, size)
		if len(text) > http1.ChunkHeadSize {
			t.Error(size, len(text))
		}
		text = append(append(text, data...), http1.EndOfChunk...)
		text, err := http1.AppendLastChunk(text, message.Fields{message.NewField("a", "b"), message.Host.Field("x")})
		if err != nil {
			t.Fatal(err)
		}
		body, trailers, rest, err := decode(string(text), 1000)
		if err != nil || body != data || trailers != "a=b " || rest != "" {
			t.Errorf("%d: %d, %q, %q, %v", size, len(body), trailers, rest, err)
		}
	}
	if _, err := http1.AppendLastChunk(nil, message.Fields{message.NewField("a", "b\r\nc: d")}); err == nil {
		t.Error("a line in a trailer is written")
	}
}
