package compress

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/model/ir"
)

// client is a message.Writer that stores the response.
type client struct {
	message.Writer
	head    message.Response
	body    bytes.Buffer
	aborted bool
}

func (c *client) Head(a *message.Response) error      { c.head = *a; return nil }
func (c *client) Write(p []byte) (int, error)         { return c.body.Write(p) }
func (c *client) ReadFrom(r io.Reader) (int64, error) { return c.body.ReadFrom(r) }
func (c *client) Flush() error                        { return nil }
func (c *client) Trailer(message.Fields) error        { return nil }
func (c *client) Abort()                              { c.aborted = true }
func (c *client) field(name string) string            { v, _ := c.head.Fields.Joined(name); return v }

func shop() string { return "shop" }

func requestAccepting(accept string) *message.Request {
	return &message.Request{Method: "GET", Major: 1, Minor: 1,
		Fields: message.Fields{message.NewField("Accept-Encoding", accept)}}
}

func both() *Policy {
	return New(&ir.Compression{Gzip: ir.Coding{On: true}, Brotli: ir.Coding{On: true, Level: -1}, GzipDisable: "old"})
}

func decoded(t *testing.T, coding string, body []byte) string {
	t.Helper()
	var from io.Reader = bytes.NewReader(body)
	var err error
	switch coding {
	case "gzip":
		from, err = gzip.NewReader(from)
	case "br":
		from = brotli.NewReader(from)
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestCodings checks which coding a client gets, and that the body is complete after decompression.
func TestCodings(t *testing.T) {
	for accept, want := range map[string]string{
		"": "", "gzip": "gzip", "br, gzip": "br", "gzip;q=1, br;q=0": "gzip", "GZIP ; Q=0.1": "gzip",
		"gzip;q=0.000": "", "gzip;q=x": "",
		"xgzip, deflate": "", "identity": "", "*": "",
	} {
		c, text := &client{}, strings.Repeat("text ", 5000)
		w := both().Writer(c, requestAccepting(accept), shop)
		defer w.Close()
		head := &message.Response{Status: 200, Length: int64(len(text)), Fields: message.Fields{
			message.ContentType.Field("Text/Plain; charset=utf-8"), message.NewField("ETag", `"x"`),
			message.NewField("Accept-Ranges", "bytes"),
		}}
		if err := w.Head(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.ReadFrom(strings.NewReader(text)); err != nil {
			t.Fatal(err)
		}
		if err := w.End(false); err != nil || decoded(t, want, c.body.Bytes()) != text {
			t.Errorf("%q: the body is another one, with %v", accept, err)
		}
		tag, length := `"x"`, head.Length
		if want != "" {
			tag, length = `W/"x"`, -1
		}
		if c.field("Content-Encoding") != want || c.field("Vary") != "Accept-Encoding" || c.field("ETag") != tag ||
			c.head.Length != length ||
			(c.field("Accept-Ranges") == "") != (want != "") {
			t.Errorf("%q: the head is %+v", accept, c.head)
		}
	}
}

// TestLeftAlone checks which responses are never compressed.
func TestLeftAlone(t *testing.T) {
	for name, change := range map[string]func(r *message.Request, a *message.Response){
		"short":  func(_ *message.Request, a *message.Response) { a.Length = 10 },
		"status": func(_ *message.Request, a *message.Response) { a.Status = 206 },
		"type":   func(_ *message.Request, a *message.Response) { a.Fields[0].Value = "image/png" },
		"events": func(_ *message.Request, a *message.Response) { a.Fields[0].Value = "text/event-stream" },
		"compressed": func(_ *message.Request, a *message.Response) {
			a.Fields.Add(message.NewField("Content-Encoding", "zstd"))
		},
		"no-transform": func(_ *message.Request, a *message.Response) {
			a.Fields.Add(message.NewField("Cache-Control", "public, No-Transform"))
		},
		"HTTP/1.0": func(r *message.Request, _ *message.Response) { r.Minor = 0 },
		"disabled": func(r *message.Request, _ *message.Response) {
			r.Fields.Add(message.UserAgent.Field("very OLD browser"))
		},
	} {
		c, r := &client{}, requestAccepting("gzip")
		a := &message.Response{Status: 200, Length: 1000,
			Fields: message.Fields{message.ContentType.Field("text/html")}}
		change(r, a)
		w := New(&ir.Compression{Gzip: ir.Coding{On: true}, GzipDisable: "old"}).Writer(c, r, shop)
		defer w.Close()
		if err := w.Head(a); err != nil {
			t.Fatal(err)
		}
		if w.encoder.Held() || c.head.Length != a.Length {
			t.Errorf("%s: it is compressed: %+v", name, c.head)
		}
	}
	for agent, want := range map[string]bool{
		"Mozilla/4.0 (compatible; MSIE 5.5; Windows 98)":          true,
		"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)":      true,
		"Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1; SV1)": false,
		"Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 6.0)":      false,
		"msie6": false, "MSIE 6": false, "": false,
	} {
		r := requestAccepting("gzip")
		r.Fields.Add(message.UserAgent.Field(agent))
		if got := New(&ir.Compression{Gzip: ir.Coding{On: true},
			GzipDisable: "msie6"}).accepted(r)[0] == nil; got != want {
			t.Errorf("with msie6, %q gets no gzip: %v", agent, got)
		}
	}
	if (*Policy)(nil).Writer(&client{}, requestAccepting("gzip"), shop) != nil || New(&ir.Compression{}) != nil {
		t.Error("something is compressed where nobody asks for it")
	}
}

// TestPieces checks that Flush sends all data that was written, and that an incomplete body is not ended properly.
func TestPieces(t *testing.T) {
	c := &client{}
	w := both().Writer(c, requestAccepting("gzip"), shop)
	defer w.Close()
	if err := w.Head(&message.Response{Status: 200, Length: 2000,
		Fields: message.Fields{message.ContentType.Field("text/html")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	from, err := gzip.NewReader(bytes.NewReader(c.body.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(from); string(text) != "first" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %q with %v", text, err)
	}
	if err := w.End(false); !errors.Is(err, errShort) {
		t.Errorf("it ends with %v", err)
	}
	if _, err := w.Write([]byte("late")); !errors.Is(err, errEnded) {
		t.Errorf("what comes late is taken: %v", err)
	}
}
