package httpserver_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

func TestRequestsGetResponses(t *testing.T) {
	s := serve(t, echo, nil)
	long := strings.Repeat("0123456789", 20_000)
	for _, c := range []struct{ name, text, want string }{
		{"GET", last("/a?b"), ok("GET /a?b", closes)},
		{"any method", crlf("FROB / HTTP/1.1", "Host: a", closes), ok("FROB /", closes)},
		{"body", crlf("POST / HTTP/1.1", "Host: a", closes, "Content-Length: 5") + "hello", ok("POST / hello", closes)},
		{"long body", crlf("POST / HTTP/1.1", "Host: a", closes, "Content-Length: 200000") + long,
			ok("POST / "+long, closes)},
		{"chunks", crlf("POST / HTTP/1.1", "Host: a", closes, "Transfer-Encoding: chunked") +
			"3;x\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
			ok("POST / hello", closes)},
		{"long chunk", crlf("POST / HTTP/1.1", "Host: a", closes, "Transfer-Encoding: chunked") + "30D40\r\n" + long +
			"\r\n0\r\n\r\n",
			ok("POST / "+long, closes)},
		{"trailers", crlf("POST / HTTP/1.1", "Host: a", closes, "Transfer-Encoding: chunked") +
			"1\r\na\r\n0\r\nX-A: b\r\nHost: c\r\n\r\n",
			ok("POST / a X-A=b", closes)},
		{"bad chunk", crlf("POST / HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "1\r\nab\r\n0\r\n\r\n",
			ok("POST / a invalid HTTP/1.1: there is no CRLF behind a chunk of the body (chunk-end)", closes)},
		{"pipelined", get("/1") + crlf("POST /2 HTTP/1.1", "Host: a", "Content-Length: 2") + "hi" +
			crlf("POST /3 HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "2\r\nho\r\n0\r\n\r\n" +
			"\r\n" + last("/4"),
			ok("GET /1") + ok("POST /2 hi") + ok("POST /3 ho") + ok("GET /4", closes)},
		{"nothing behind close", last("/1") + get("/2"), ok("GET /1", closes)},
		{"HEAD", crlf("HEAD /x HTTP/1.1", "Host: a") + last("/"),
			crlf("HTTP/1.1 200 OK", "Content-Length: 7") + ok("GET /", closes)},
		{"1.0", crlf("GET / HTTP/1.0"), strings.Replace(ok("GET /", closes), "1.1", "1.0", 1)},
		{"1.0 keeps", crlf("GET / HTTP/1.0", "Connection: keep-alive") + crlf("GET /2 HTTP/1.0"),
			strings.Replace(ok("GET /", "Connection: keep-alive"), "1.1", "1.0", 1) +
				strings.Replace(ok("GET /2", closes), "1.1", "1.0", 1)},
	} {
		if got := exchange(t, s.address, c.text); got != c.want {
			t.Errorf("%s: %.300q, want %.300q", c.name, got, c.want)
		}
	}
	// The result must not depend on how the text is split.
	text := crlf("POST /2 HTTP/1.1", "Host: a", "Content-Length: 2") + "hi" +
		crlf("POST /3 HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "2\r\nho\r\n0\r\nA: b\r\n\r\n" + last("/4")
	c := dial(t, s.address)
	for i := range text {
		c.send(text[i : i+1])
	}
	if got, want := undated(c.rest()), ok("POST /2 hi")+ok("POST /3 ho A=b")+ok("GET /4", closes); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRewrittenMethod checks that a response has a body or not according to what the client sent, even if the handler
// changes the method and the version of the request, as a Caddy handler of a chain may do. Otherwise the client would
// take the body for the next response.
func TestRewrittenMethod(t *testing.T) {
	s := serve(t, func(w message.Writer, r *message.Request) {
		methods := map[string]string{http.MethodGet: http.MethodHead, http.MethodHead: http.MethodGet}
		r.Method, r.Minor = methods[r.Method], 0
		answer(w, http.StatusOK, "hello")
	}, nil)
	got := exchange(t, s.address, crlf("HEAD /1 HTTP/1.1", "Host: a")+get("/2")+last("/3"))
	if want := crlf("HTTP/1.1 200 OK", "Content-Length: 5") + ok("hello") + ok("hello", closes); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestResponses(t *testing.T) {
	long := strings.Repeat("0123456789", 30_000)
	head := func(status int, length int64, fields ...message.Field) *message.Response {
		return &message.Response{Status: status, Length: length, Fields: fields}
	}
	handlers := map[string]func(message.Writer, *message.Request){
		"/nothing": func(message.Writer, *message.Request) {},
		"/chunks": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, -1))
			_, _ = io.WriteString(w, "hello")
			_ = w.Flush()
			_, _ = io.WriteString(w, "you")
		},
		"/chunk": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, -1))
			_, _ = w.ReadFrom(strings.NewReader(long[:5000]))
		},
		"/trailers": func(w message.Writer, _ *message.Request) {
			_ = w.Head(&message.Response{Status: 200, Length: -1, Trailers: []string{"X-A"}})
			_, _ = io.WriteString(w, "a")
			_ = w.Trailer(message.Fields{message.NewField("X-A", "b"), message.NewField("x-b", "c")})
		},
		"/badtrailers": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, -1))
			if w.Trailer(message.Fields{message.NewField("A", "b\r\nC: d")}) == nil {
				panic("a line has been written")
			}
		},
		"/noswitch": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(101, 0,
				message.Upgrade.Field("x")))
		},
		"/long": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, int64(len(long))))
			_, _ = io.WriteString(w, long)
		},
		"/longread": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, int64(len(long))))
			_, _ = w.ReadFrom(strings.NewReader(long))
		},
		"/204": func(w message.Writer, _ *message.Request) { _ = w.Head(head(204, -1)); _, _ = io.WriteString(w, "x") },
		"/304": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(304, 5))
			_, _ = io.WriteString(w, "hello")
		},
		"/hints": func(w message.Writer, _ *message.Request) {
			_ = w.Interim(103, message.Fields{message.NewField("Link", "a")})
			_ = w.Interim(103, message.Fields{message.NewField("Link", "b")})
			answer(w, 200, "x")
		},
		"/short": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, 5))
			_, _ = io.WriteString(w, "hell")
		},
		"/over": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, 2))
			if n, err := io.WriteString(w, "hello"); n != 0 || err == nil {
				panic("too much has been written")
			}
			_, _ = io.WriteString(w, "ok")
		},
		"/split": func(w message.Writer, _ *message.Request) {
			if w.Head(head(200, 0, message.NewField("A", "b\r\nC: d"))) == nil || w.Started() {
				panic("a line has been written")
			}
			answer(w, 502, "bad")
		},
		"/close": func(w message.Writer, _ *message.Request) { answer(w, 200, "x", message.Connection.Field("close")) },
		"/cutchunk": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, -1))
			_, _ = io.WriteString(w, "a")
			w.Abort()
		},
		"/panic": func(message.Writer, *message.Request) { panic(errTest) },
		"/mended": func(w message.Writer, r *message.Request) {
			r.Panicked = true
			answer(w, 500, "sorry", message.Connection.Field("close"))
		},
		"/abort": func(message.Writer, *message.Request) { panic(http.ErrAbortHandler) },
		"/midpanic": func(w message.Writer, _ *message.Request) {
			_ = w.Head(head(200, 5))
			_, _ = io.WriteString(w, "a")
			panic(errTest)
		},
		"/twoheads":   func(w message.Writer, _ *message.Request) { answer(w, 200, "x"); answer(w, 200, "") },
		"/dated":      func(w message.Writer, _ *message.Request) { answer(w, 200, "", message.Date.Field("then")) },
		"/unfinished": func(w message.Writer, _ *message.Request) { _ = w.Head(head(200, -1)) },
	}
	s := serve(t, func(w message.Writer, r *message.Request) { handlers[r.Path](w, r) }, nil)
	chunked := "Transfer-Encoding: chunked"
	next := last("/close")
	end := ok("x", closes)
	for _, c := range []struct{ name, text, want string }{
		{"nothing", get("/nothing") + next, crlf("HTTP/1.1 500 Internal Server Error", "Content-Length: 0") + end},
		{"chunks", get("/chunks") + next,
			crlf("HTTP/1.1 200 OK", chunked) + "5\r\nhello\r\n3\r\nyou\r\n0\r\n\r\n" + end},
		{"large chunk", get("/chunk") + next,
			crlf("HTTP/1.1 200 OK", chunked) + "1388\r\n" + long[:5000] + "\r\n0\r\n\r\n" + end},
		{"chunks to HEAD", crlf("HEAD /chunks HTTP/1.1", "Host: a") + next, crlf("HTTP/1.1 200 OK") + end},
		{"chunks to 1.0", crlf("GET /chunks HTTP/1.0", "Connection: keep-alive"),
			crlf("HTTP/1.0 200 OK", closes) + "helloyou"},
		{"no chunk", get("/unfinished") + next, crlf("HTTP/1.1 200 OK", chunked) + "0\r\n\r\n" + end},
		{"trailers", get("/trailers") + next,
			crlf("HTTP/1.1 200 OK", chunked, "Trailer: X-A") + "1\r\na\r\n0\r\nX-A: b\r\nx-b: c\r\n\r\n" + end},
		{"bad trailers", get("/badtrailers") + next, crlf("HTTP/1.1 200 OK", chunked) + "0\r\n\r\n" + end},
		{"101 without switch", get("/noswitch") + next, crlf("HTTP/1.1 101 Switching Protocols", "Upgrade: x")},
		{"trailers to 1.0", crlf("GET /trailers HTTP/1.0"), crlf("HTTP/1.0 200 OK", closes) + "a"},
		{"long", get("/long") + next, ok(long) + end},
		{"long to HEAD", crlf("HEAD /long HTTP/1.1", "Host: a") + next,
			crlf("HTTP/1.1 200 OK", "Content-Length: 300000") + end},
		{"long from a reader", get("/longread") + next, ok(long) + end},
		{"204", get("/204") + next, crlf("HTTP/1.1 204 No Content") + end},
		{"304", get("/304") + next, crlf("HTTP/1.1 304 Not Modified", "Content-Length: 5") + end},
		{"hints", get("/hints") + next, crlf("HTTP/1.1 103 Early Hints", "Link: a") + crlf("HTTP/1.1 103 Early Hints",
			"Link: b") + ok("x") + end},
		{"hints to 1.0", crlf("GET /hints HTTP/1.0"), crlf("HTTP/1.0 200 OK", "Content-Length: 1", closes) + "x"},
		{"too short", get("/short") + next, crlf("HTTP/1.1 200 OK", "Content-Length: 5") + "hell"},
		{"too long", get("/over") + next, ok("ok") + end},
		{"split", get("/split") + next, crlf("HTTP/1.1 502 Bad Gateway", "Content-Length: 3") + "bad" + end},
		{"the handler closes", get("/close") + next, end},
		{"cut chunks", get("/cutchunk") + next, crlf("HTTP/1.1 200 OK", chunked) + "1\r\na\r\n"},
		{"panic", get("/panic") + next, ""},
		{"an answer after a panic", get("/mended") + next,
			crlf("HTTP/1.1 500 Internal Server Error", "Content-Length: 5", closes) + "sorry"},
		{"abort", get("/abort") + next, ""},
		{"panic in the body", get("/midpanic") + next, crlf("HTTP/1.1 200 OK", "Content-Length: 5") + "a"},
		{"two heads", get("/twoheads") + next, ok("x") + end},
		{"own date", get("/dated") + next, ok("") + end},
	} {
		if got := exchange(t, s.address, c.text); got != c.want {
			t.Errorf("%s: %.300q, want %.300q", c.name, got, c.want)
		}
	}
	if len(s.panics) != 2 || fmt.Sprint(s.panics[0]) != errTest.Error() {
		t.Errorf("panics are %v", s.panics)
	}
	c := dial(t, s.address)
	c.send(crlf("GET /cutchunk HTTP/1.0"))
	if all, err := io.ReadAll(c.reader); err == nil {
		t.Errorf("a cut body that ends with the connection looks whole: %q", all)
	}
}

func TestRefusedRequests(t *testing.T) {
	s := serve(t, echo, nil)
	for _, c := range []struct {
		text   string
		status int
		reason string
	}{
		{crlf("GET / HTTP/1.1"), 400, "no-host"},
		{"GET / HTTP/1.1\nHost: a\n\n", 400, "bare-lf"},
		{crlf("GET / HTTP/1.1", "Host: a", "Content-Length: 5", "Transfer-Encoding: chunked") + "0\r\n\r\n" +
			get("/admin"), 400,
			"length-and-coding"},
		{crlf("GET / HTTP/1.1", "Host: a", "Transfer-Encoding: gzip"), 501, "transfer-encoding"},
		{crlf("CONNECT a:1 HTTP/1.1", "Host: a"), 405, "method-not-served"},
		{"\x16\x03\x01", 400, "method"},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "http2-preface"},
		{crlf("GET / HTTP/1.1", "Host: a", "A: "+strings.Repeat("b", 33<<10)), 431, "head-too-large"},
		{crlf("GET / HTTP/1.1", "Host: a", "A: "+strings.Repeat("b", 1<<20)), 431, "head-too-large"},
		{"POST /" + strings.Repeat("a", 100_000), 431, "head-too-large"},
	} {
		body := fmt.Sprintf("%d %s: %s\n", c.status, http.StatusText(c.status), c.reason)
		want := crlf(fmt.Sprintf("HTTP/1.1 %d %s", c.status, http.StatusText(c.status)),
			"Content-Type: text/plain; charset=utf-8",
			fmt.Sprintf("Content-Length: %d", len(body)), closes) + body
		if got := exchange(t, s.address, c.text); got != want {
			t.Errorf("%.100q: %q, want %q", c.text, got, want)
		}
	}
	if got := s.reasons(); !strings.HasPrefix(got, "no-host bare-lf length-and-coding transfer-encoding") {
		t.Errorf("heard of %q", got)
	}
	head := crlf("GET / HTTP/1.1", "Host: a", closes, "A: "+strings.Repeat("b", 31<<10))
	if got := exchange(t, s.address, head); got != ok("GET /", closes) {
		t.Errorf("a head below the limit: %q", got)
	}
}

// TestRefusedBehindAnother checks that a rejected request contains nothing of the previous request: neither its method,
// because the response to a HEAD has no body, nor its fields, which would be logged.
func TestRefusedBehindAnother(t *testing.T) {
	seen := make(chan string, 1)
	s := serve(t, echo, func(h *host) {
		h.rejected = func(r *message.Request, _ *http1.Error) { seen <- r.Method + r.Host + fmt.Sprint(len(r.Fields)) }
	})
	for _, bad := range []string{"GET / HTTP/1.1\n", "\x00", "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", 40<<10)} {
		got := exchange(t, s.address, crlf("HEAD / HTTP/1.1", "Host: a", "A: b")+bad)
		_, body, _ := strings.Cut(strings.TrimPrefix(got, crlf("HTTP/1.1 200 OK", "Content-Length: 6")), "\r\n\r\n")
		if len(body) == 0 {
			t.Errorf("%.20q: the refusal has no body: %q", bad, got)
		}
		if was := fixture.Receive(t, "the refused request", seen); was != "0" {
			t.Errorf("%.20q: %s was refused", bad, was)
		}
	}
}

// TestEarlyResponses checks that a response reaches a client that is still sending its body.
func TestEarlyResponses(t *testing.T) {
	s := serve(t, func(w message.Writer, r *message.Request) { answer(w, 413, r.Path) }, nil)
	early := func(path string, fields ...string) string {
		return crlf(append([]string{"HTTP/1.1 413 Request Entity Too Large",
			fmt.Sprintf("Content-Length: %d", len(path))}, fields...)...) + path
	}
	small := strings.Repeat("a", 100_000)
	large := strings.Repeat("a", 4<<20)
	for _, c := range []struct{ name, text, want string }{
		{"small", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 100000") + small + last("/2"),
			early("/1") + early("/2", closes)},
		{"in one piece", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 2") + "hi" + last("/2"),
			early("/1") + early("/2", closes)},
		{"large", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 4194304") + large, early("/1", closes)},
		{"chunks", crlf("POST /1 HTTP/1.1", "Host: a", "Transfer-Encoding: chunked") + "400000\r\n" + large,
			early("/1", closes)},
		{"expects", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 5", "Expect: 100-continue"),
			early("/1", closes)},
		{"does not wait", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 5", "Expect: 100-continue") +
			"hello" + get("/2"),
			early("/1", closes)},
		{"closes", crlf("POST /1 HTTP/1.1", "Host: a", "Content-Length: 200000", closes) + small + small,
			early("/1", closes)},
	} {
		if got := exchange(t, s.address, c.text); got != c.want {
			t.Errorf("%s: %.300q, want %q", c.name, got, c.want)
		}
	}
}

func TestContinue(t *testing.T) {
	s := serve(t, echo, nil)
	c := dial(t, s.address)
	for range 2 {
		c.send(crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 5", "Expect: 100-continue"))
		c.expect(crlf("HTTP/1.1 100 Continue"))
		c.send("hello")
		//nolint:bodyclose // It is read to its end.
		if response, err := http.ReadResponse(c.reader, nil); err != nil ||
			response.ContentLength != int64(len("POST / hello")) {
			t.Fatal(response, err)
		} else if body, err := io.ReadAll(response.Body); err != nil || string(body) != "POST / hello" {
			t.Fatal(string(body), err)
		}
	}
}

func TestTimeLimits(t *testing.T) {
	const limit = 100 * time.Millisecond
	options := patient()
	options.Head, options.Body, options.Idle = limit, limit, limit
	var bodyErr error
	handle := func(w message.Writer, r *message.Request) {
		if r.Body != nil {
			_, bodyErr = io.ReadAll(r.Body)
			answer(w, 408, "")
			return
		}
		echo(w, r)
	}
	for name, c := range map[string]struct{ text, want string }{
		"silent": {"", ""},
		"idle":   {get("/"), ok("GET /")},
		"body": {crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 5") + "hell",
			crlf("HTTP/1.1 408 Request Timeout", "Content-Length: 0", closes)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := piped(t, &host{handle: handle, limits: options})
				begin := time.Now()
				got := client.exchange(c.text)
				// The server adds up to a quarter to a limit, because it moves a deadline only then.
				if took := time.Since(begin); got != c.want || took < limit || took > limit*3/2 {
					t.Errorf("got %q after %v", got, took)
				}
			})
		})
	}
	var timeout net.Error
	if !asTimeout(bodyErr, &timeout) {
		t.Error(bodyErr)
	}
}
