package httpserver_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/message"
)

// difference is a row of what is meant to be other than in net/http.
type difference struct {
	reason string
	// is says whether a request is of that sort, and got and want are the statuses here and there.
	is func(text string, got, want int) bool
}

// differences are all that there are.
var differences = []difference{
	{"a bare LF is refused: others take it for no end of a line", func(text string, got, _ int) bool {
		return got == 400 && strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\n")
	}},
	{"folded lines are refused", func(text string, got, _ int) bool { return got == 400 && strings.Contains(text, "\r\n ") }},
	{"a length beside chunks is how requests are smuggled", func(text string, got, _ int) bool {
		return got == 400 && strings.Contains(text, "Content-Length") && strings.Contains(text, "Transfer-Encoding")
	}},
	{"codings in HTTP/1.0 are refused", func(text string, got, _ int) bool {
		return got == 400 && strings.Contains(text, "HTTP/1.0") && strings.Contains(strings.ToLower(text), "transfer-encoding")
	}},
	{"equal lengths are refused, too", func(text string, got, _ int) bool {
		return got == 400 && strings.Count(text, "Content-Length") > 1
	}},
	{"a length with more digits than any body is too large", func(text string, got, want int) bool {
		return got == 413 && want == 400 && strings.Contains(text, "99999")
	}},
	{"chunked twice is no unknown coding", func(text string, got, want int) bool {
		return got == 400 && want == 501 && strings.Count(text, "chunked") > 1
	}},
	{"what is no path and no URL is for nobody", func(text string, got, _ int) bool {
		return got == 400 && (strings.Contains(text, " * ") || strings.Contains(text, " a:1 "))
	}},
	{"CONNECT and TRACE are not served", func(text string, got, _ int) bool {
		return got >= 400 && (strings.Contains(text, "CONNECT") || strings.Contains(text, "TRACE"))
	}},
	{"an empty host is none", func(text string, got, _ int) bool { return got == 400 && strings.Contains(text, "Host:\r\n") }},
	{"a port has digits", func(text string, got, _ int) bool { return got == 400 && strings.Contains(text, "a:b") }},
	{"a NUL in a path is for nobody", func(text string, got, _ int) bool { return got == 400 && strings.Contains(text, "%00") }},
	{"HTTP/1.2 and the like do not exist", func(text string, got, _ int) bool { return got == 505 && strings.Contains(text, "HTTP/1.2") }},
	{"two errors, of which another one is found first", func(_ string, got, want int) bool { return got >= 400 && want >= 400 }},
	{"net/http tolerates no empty lines but behind a POST", func(text string, got, want int) bool {
		return want == 400 && got < 500 && strings.HasPrefix(text, "\r\n")
	}},
}

// pieces are what requests are made of. The first of each is the ordinary one, and comes most often.
var (
	methods = []string{"GET", "POST", "PUT", "HEAD", "OPTIONS", "DELETE", "FROB", "get", "G,T", "CONNECT", "TRACE", ""}
	targets = []string{"/", "/a/b?c=d", "/a%20b", "//a//b", "http://b/x?y", "http://b:80", "/%zz", "*",
		"/a b", "/\x80", "/a|b", "/?", "/x%00", "a:1", "/a#b"}
	versions = []string{"HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "HTTP/1.1 ", ""}
	hosts    = []string{"Host: a\r\n", "Host: a:80\r\n", "host: A.b\r\n", "", "Host: a\r\nHost: b\r\n", "Host:\r\n",
		"Host: a/b\r\n", "Host: a b\r\n",
		"Host: a:b\r\n", "Host: [::1]\r\n", "Host : a\r\n"}
	others = []string{"", "X-A: b\r\n", "X-A:  b \t\r\nx-a:c\r\n", "Connection: keep-alive\r\n", "Connection: close\r\n",
		"Connection: X-A, close\r\nX-A: b\r\n",
		"Cookie: a=b; c=d\r\n", "X-A: \x80\r\n", "X-A: b\n", "X-A: b\r\n c\r\n",
		"X-A : b\r\n", "X A: b\r\n", "X-A: b\x00\r\n", "X-A: b\rX-B: c\r\n", ": b\r\n", "X-A\r\n",
		"Expect: x\r\n"}
	bodies = []string{"\r\n", "Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		"Content-Length: 0\r\n\r\n",
		"transfer-encoding: Chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nX-T: u\r\n\r\n", "Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
		"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "Content-Length: +5\r\n\r\nhello",
		"Content-Length: 9999999999999999999999\r\n\r\nhello", "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"}
)

func pick(random *rand.Rand, from []string) string {
	if random.IntN(4) > 0 {
		return from[random.IntN(min(3, len(from)))]
	}
	return from[random.IntN(len(from))]
}

func generate(random *rand.Rand) string {
	text := pick(random, methods) + " " + pick(random, targets) + " " + pick(random, versions) + "\r\n" + pick(random, hosts) + pick(random, others) +
		pick(random, others) + pick(random, bodies)
	if random.IntN(20) == 0 {
		text = "\r\n" + text
	}
	return text
}

// TestLikeNetHTTP sends requests to our server and to that of net/http, with a handler that says what it sees. Each difference has to
// be one of the table.
func TestLikeNetHTTP(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	ours := serve(t, func(w message.Writer, r *message.Request) { answerSeen(w, r) }, nil).address
	theirs := netHTTP(t)
	random := rand.New(rand.NewPCG(1, 2))
	var used [64]int
	for range rounds {
		text := generate(random)
		got, want := ask(t, ours, text), ask(t, theirs, text)
		if got == want {
			continue
		}
		found := false
		for i, d := range differences {
			if d.is(text, status(got), status(want)) {
				used[i]++
				found = true
				break
			}
		}
		if !found {
			t.Errorf("%q:\n%s\nnet/http:\n%s", text, got, want)
		}
	}
	if testing.Short() {
		return
	}
	for i, d := range differences {
		if used[i] == 0 {
			t.Errorf("nothing is different because %s", d.reason)
		}
	}
}

// status returns the status of the first final answer, or 0.
func status(answers string) (code int) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(answers, "continue "), "%d", &code)
	return code
}

// ask sends a request and one behind it, and returns what of the answers ought to be the same.
func ask(t *testing.T, address, text string) string {
	c := dial(t, address)
	c.send(text + last("/behind"))
	method, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), " ")
	var all strings.Builder
	for {
		response, err := http.ReadResponse(c.reader, &http.Request{Method: method})
		if err != nil {
			c.Close()
			return all.String()
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		switch {
		case response.StatusCode == http.StatusContinue:
			all.WriteString("continue ")
			continue
		case response.StatusCode >= http.StatusBadRequest:
			body = nil
		}
		fmt.Fprintf(&all, "%d %s %q %v %d %v\n", response.StatusCode, response.Proto, body, err, response.ContentLength, response.Close)
		if method = http.MethodGet; response.StatusCode >= http.StatusBadRequest {
			c.Close()
			return all.String()
		}
	}
}

// seen is what a handler sees of a request.
func seen(r *message.Request, body []byte, err error) string {
	header := r.Fields.Header()
	for _, name := range []string{"Trailer", "Expect", "Cache-Control", "Content-Length"} {
		delete(header, name)
	}
	var lines bytes.Buffer
	_ = header.Write(&lines)
	failed := err != nil
	return fmt.Sprintf("%s %q %s %s %s %d %q %v\n%s", r.Method, r.Path, r.OutTarget(), r.Host, r.Protocol(), r.Length, body, failed, lines.String())
}

func answerSeen(w message.Writer, r *message.Request) {
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	answer(w, 200, seen(r, body, err), message.ContentType.Field("text/plain"))
}

func netHTTP(t *testing.T) string {
	t.Helper()
	server := &http.Server{ErrorLog: zap.NewStdLog(zap.NewNop()), ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, from *http.Request) {
			body, err := io.ReadAll(from.Body)
			delete(from.Header, "X A") // net/http keeps such names.
			if strings.Contains(strings.Join(from.Header["Connection"], ","), "X-A") {
				delete(from.Header, "X-A") // What is about the connection is not shown here.
			}
			var r message.Request
			r.FromHTTP(from)
			if r.Path == "" {
				r.SetPath("/")
			}
			text := seen(&r, body, err)
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			_, _ = io.WriteString(w, text)
		})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}
