package filter_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/k8singress/k8singress/internal/http/exchange"
	"github.com/k8singress/k8singress/internal/http/substitute"
	"github.com/k8singress/k8singress/internal/tests/exchangetest"
)

const get = "GET http://shop.example/"

var substitutionCases = []filterCase{
	{name: "no body", settings: `{"pairs": [{"from": "a"}]}`, requests: []requestCase{
		{request: get, next: same, backend: "200 | Content-Type: text/html | ETag: \"a\"",
			response: "200 | Content-Type: text/html | ETag: \"a\""},
		{request: get, next: same, fails: http.StatusBadGateway, response: "502"},
	}},
	rejected("no pairs", `{}`, "there are 0 pairs"),
	rejected("too many pairs", `{"pairs": [`+strings.Repeat(`{"from": "a"}, `, 255)+`{"from": "b"}]}`,
		"there are 256 pairs"),
	rejected("an empty text", `{"pairs": [{"to": "b"}]}`, "a text to find has 0 bytes"),
	rejected("a long text", `{"pairs": [{"from": "`+strings.Repeat("a", 4097)+`"}]}`, "a text to find has 4097 bytes"),
	rejected("a text with half a variable", `{"pairs": [{"from": "${a"}]}`, "no closing brace"),
	rejected("a replacement with half a variable", `{"pairs": [{"from": "a", "to": "$"}]}`, "a $ without a variable"),
}

// The settings and the response of most cases below.
const (
	abToX     = `{"pairs": [{"from": "ab", "to": "x"}]}`
	forAll    = `{"pairs": [{"from": "ab", "to": "x"}], "types": ["*"]}`
	forCSS    = `{"pairs": [{"from": "ab", "to": "x"}], "types": ["Text/CSS"]}`
	html      = "200 | Content-Type: text/html"
	charset   = "200 | Content-Type: Text/HTML ;charset=utf-8"
	css       = "200 | Content-Type: text/css"
	events    = "200 | Content-Type: text/event-stream"
	notFound  = "404 | Content-Type: text/html"
	partial   = "206 | Content-Type: text/html | Content-Range: bytes 0-1/9"
	validated = html + ` | Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT | ETag: "a" | Accept-Ranges: bytes`
)

// TestSubstitution checks which responses are changed.
func TestSubstitution(t *testing.T) {
	for name, c := range map[string]struct {
		settings, request, head, body string
		// response and sent are the head and the body that the client gets.
		response, sent string
	}{
		"HTML":               {abToX, get, html, "ABab", html, "xab"},
		"all occurrences":    {`{"pairs": [{"from": "ab", "to": "x"}], "repeat": true}`, get, html, "ABab", html, "xx"},
		"a charset":          {abToX, get, charset, "ab", charset, "x"},
		"another type":       {abToX, get, css, "ab", css, "ab"},
		"a similar type":     {abToX, get, css + "x", "ab", css + "x", "ab"},
		"no type":            {abToX, get, "200", "ab", "200", "ab"},
		"a configured type":  {forCSS, get, css, "ab", css, "x"},
		"HTML and others":    {forCSS, get, html, "ab", html, "x"},
		"all types":          {forAll, get, events, "ab", events, "x"},
		"all types, no type": {forAll, get, "200", "ab", "200", "x"},
		"an error":           {abToX, get, notFound, "ab", notFound, "x"},
		"an encoded body": {abToX, get, validated + " | Content-Encoding: gzip", "ab",
			validated + " | Content-Encoding: gzip", "ab"},
		"a part":     {abToX, get, partial, "ab", partial, "ab"},
		"validators": {abToX, get, validated, "ab", html, "x"},
		"kept validators": {`{"pairs": [{"from": "ab", "to": "x"}], "keep_last_modified": true}`, get, validated, "ab",
			html + ` | Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT | ETag: W/"a"`, "x"},
		"HEAD":         {abToX, "HEAD http://shop.example/", validated, "", html, ""},
		"an upgrade":   {forAll, get, "101", "ab", "101", "ab"},
		"no content":   {abToX, get, "204" + validated[3:], "", "204" + validated[3:], ""},
		"not modified": {abToX, get, "304" + validated[3:], "", "304" + html[3:], ""},
		"variables": {`{"pairs": [{"from": "http://$host/", "to": "https://${host}:8443/$http_x/"}], "repeat": true}`,
			"GET http://shop.example/ | X: $host", html, "http://Shop.Example/ http://other.example/", html,
			"https://shop.example:8443/$host/ http://other.example/"},
		"an empty variable": {`{"pairs": [{"from": "$http_x", "to": "x"}, {"from": "b", "to": "y"}]}`, get, html,
			"ab", html, "ay"},
		"only empty variables": {`{"pairs": [{"from": "$http_x", "to": "x"}]}`, get, validated, "ab", validated, "ab"},
		"a long variable": {`{"pairs": [{"from": "$http_x", "to": "x"}]}`, get + " | X: " + strings.Repeat("a", 4097),
			html, strings.Repeat("a", 4097), html, strings.Repeat("a", 4097)},
		"many long variables": {`{"pairs": [{"from": "a", "to": "x"}` +
			strings.Repeat(`, {"from": "$http_x", "to": "x"}`, 16) + `, {"from": "$http_y", "to": "y"}]}`,
			get + " | Y: bbbbbbbbbbbbbbbb | X: " + strings.Repeat("x", 4095),
			html, "abbbbbbbbbbbbbbbb", html, "xbbbbbbbbbbbbbbbb"},
		"a long replacement": {`{"pairs": [{"from": "a", "to": "` + strings.Repeat("$http_x", 64) +
			`"}, {"from": "b", "to": "$http_y"}]}`, get + " | Y: y | X: " + strings.Repeat("x", 20_000),
			html, "ab", html, "ay"},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, c.request)
			f := newEnvironment(t).newFilter(t, "k8singress_substitution", c.settings)
			if responded, err := f.Apply(x); responded || err != nil {
				t.Fatalf("Apply returns %t, %v", responded, err)
			}
			head := exchangetest.Response(t, c.head)
			head.Length = int64(len(c.body))
			if x.Method == http.MethodHead {
				head.Length = 4
			}
			err := x.Head(head)
			if err == nil {
				_, err = x.Writer.Write([]byte(c.body))
			}
			if err := x.EndResponse(err); err != nil {
				t.Error(err)
			}
			if got := response.String(); got != c.response || response.Body.String() != c.sent {
				t.Errorf("the client gets %q\n           want %q\nwith the body %q, want %q", got, c.response,
					response.Body.String(), c.sent)
			}
			length := int64(len(c.sent))
			if changed := c.response != c.head; changed && (x.Method == http.MethodHead || head.Status == 304) {
				length = -1
			}
			if got := response.Response.Length; got != length {
				t.Errorf("the length is %d, want %d", got, length)
			}
		})
	}
}

// TestLengthOfSubstitution checks which changed bodies get a Content-Length.
func TestLengthOfSubstitution(t *testing.T) {
	long := strings.Repeat("c", substitute.MaxHeld)
	for name, c := range map[string]struct {
		body   string
		length int64
		flush  bool
		want   int64
	}{
		"short":            {"ab", 2, false, 1},
		"as long as held":  {long[:len(long)-2] + "ab", int64(len(long)), false, int64(len(long)) - 1},
		"longer":           {long + "ab", int64(len(long)) + 2, false, -1},
		"longer than held": {strings.Repeat("d", len(long)), int64(len(long)), false, -1},
		"unknown length":   {"ab", -1, false, -1},
		"flushed":          {"ab", 2, true, -1},
	} {
		t.Run(name, func(t *testing.T) {
			x, response := exchangetest.New(t, get)
			f := newEnvironment(t).newFilter(t, "k8singress_substitution",
				`{"pairs": [{"from": "ab", "to": "x"}, {"from": "d", "to": "dd"}], "repeat": true}`)
			if _, err := f.Apply(x); err != nil {
				t.Fatal(err)
			}
			head := exchangetest.Response(t, html)
			head.Length = c.length
			err := x.Head(head)
			if c.flush {
				err = errors.Join(err, x.Writer.Flush())
			}
			for part := range slices.Chunk([]byte(c.body), 5_000) {
				_, failed := x.Writer.Write(part)
				err = errors.Join(err, failed)
			}
			if !x.Writer.Started() || x.EndResponse(err) != nil {
				t.Fatal(err)
			}
			want := strings.NewReplacer("ab", "x", "d", "dd").Replace(c.body)
			if got := response.Response.Length; got != c.want || response.Body.String() != want {
				t.Errorf("the length is %d with %d bytes, want %d with %d", got, response.Body.Len(), c.want, len(want))
			}
		})
	}
}

// TestTwoSubstitutions checks that the filter that comes first in the chain gets the body that the second one has
// changed.
func TestTwoSubstitutions(t *testing.T) {
	x, response := exchangetest.New(t, get)
	env := newEnvironment(t)
	for _, settings := range []string{
		`{"pairs": [{"from": "bc", "to": "d"}]}`, `{"pairs": [{"from": "a", "to": "b"}], "repeat": true}`,
	} {
		if _, err := env.newFilter(t, "k8singress_substitution", settings).Apply(x); err != nil {
			t.Fatal(err)
		}
	}
	head := exchangetest.Response(t, html)
	head.Length = 4
	err := x.Head(head)
	if err == nil {
		_, err = x.Writer.Write([]byte("acab"))
	}
	if err = x.EndResponse(err); err != nil || response.Body.String() != "dbb" {
		t.Errorf("the client gets %q, %v", response.Body.String(), err)
	}
}

// TestSubstitutionAborted checks a body that is shorter than its Content-Length: the response is aborted, because the
// client does not get the Content-Length. A failed chain whose response has not started may still get an error page,
// which is not changed.
func TestSubstitutionAborted(t *testing.T) {
	for length, aborted := range map[int]bool{2: false, 3: true} {
		x, response := exchangetest.New(t, get)
		out := &abortable{Recorder: response}
		x.Writer = out
		if _, err := newEnvironment(t).newFilter(t, "k8singress_substitution", abToX).Apply(x); err != nil {
			t.Fatal(err)
		}
		head := exchangetest.Response(t, html)
		head.Length = int64(length)
		if err := x.Head(head); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Writer.Write([]byte("ab")); err != nil {
			t.Fatal(err)
		}
		if err := x.EndResponse(nil); errors.Is(err, exchange.ErrAborted) != aborted || out.aborted != aborted {
			t.Errorf("a length of %d: %v, aborted: %t", length, err, out.aborted)
		}
	}
}

type abortable struct {
	*exchangetest.Recorder
	aborted bool
}

func (a *abortable) Abort() { a.aborted = true }

// TestSubstitutionOfErrorPage checks that the error page for a failed request is not changed.
func TestSubstitutionOfErrorPage(t *testing.T) {
	x, response := exchangetest.New(t, get)
	if _, err := newEnvironment(t).newFilter(t, "k8singress_substitution", abToX).Apply(x); err != nil {
		t.Fatal(err)
	}
	failed := exchange.Fail(http.StatusBadGateway, nil)
	if err := x.EndResponse(failed); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	page := exchangetest.Response(t, "502"+validated[3:])
	page.Length = 2
	err := x.Head(page)
	if err == nil {
		_, err = x.Writer.Write([]byte("ab"))
	}
	if err != nil || response.String() != "502"+validated[3:] || response.Body.String() != "ab" {
		t.Errorf("the client gets %q, %q, %v", response, response.Body.String(), err)
	}
}
