package featuretests

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// final is the first line of an answer that is not an interim one. Without a word, whether a closed connection is noticed
// before the next request would be a matter of luck.
var final = regexp.MustCompile(`HTTP/1\.1 [2-9]\d\d [^\r]*\r\n`)

// answers are what an endpoint says, byte by byte; it closes the connection behind each, and says so. Those that are passed
// on piece by piece have a type.
var answers = map[string]string{
	"plain":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok",
	"no-type":      "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>ok</html>",
	"empty":        "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
	"not-modified": "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\nContent-Length: 5\r\n\r\n",
	"error":        "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx",
	"strange":      "HTTP/1.1 799 Strange\r\nContent-Length: 1\r\n\r\nx",
	"redirect":     "HTTP/1.1 302 Found\r\nLocation: /elsewhere?x={env.HOME}\r\nContent-Length: 0\r\n\r\n",
	"cookies":      "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
	"hop-by-hop":   "HTTP/1.1 200 OK\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok",
	"own-headers":  "HTTP/1.1 200 OK\r\nServer: mine\r\nVia: 1.1 other\r\nDate: Mon, 02 Jan 2006 15:04:05 GMT\r\nContent-Length: 2\r\n\r\nok",
	"chunked":      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\nTrailer: X-Sum\r\n\r\n" +
		"2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
	"late-trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n2\r\nok\r\n0\r\nX-Late: 7\r\n\r\n",
	"until-close":  "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nok",
	"events":       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	"early-hints":  "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"continue":     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"compressed":   "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\ngzip",
	"no-http":      "SSH-2.0-OpenSSH\r\n\r\n",
	"two-lengths":  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
	"large":        "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000),
	"nothing":      "",
}

// asked are requests without the path of the answer, which stands for %s.
var asked = map[string]string{
	"GET":              "GET %s HTTP/1.1\r\nHost: a.example\r\n\r\n",
	"HEAD":             "HEAD %s HTTP/1.1\r\nHost: a.example\r\n\r\n",
	"POST":             "POST %s HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody",
	"POST of nothing":  "POST %s HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n",
	"DELETE with body": "DELETE %s HTTP/1.1\r\nHost: a.example\r\nContent-Length: 4\r\n\r\nbody",
	"query":            "GET %s?a=%%7Benv.HOME%%7D&b=c+d&e;f HTTP/1.1\r\nHost: a.example\r\n\r\n",
	"escapes":          "GET %s/%%2e%%2E/%%2F/%%7benv.HOME%%7d;x=1 HTTP/1.1\r\nHost: a.example\r\n\r\n",
	"host with port":   "GET %s HTTP/1.1\r\nHost: A.Example:80\r\n\r\n",
	"whole URL":        "GET http://a.example%s HTTP/1.1\r\nHost: other.example\r\n\r\n",
	"forged":           "GET %s HTTP/1.1\r\nHost: a.example\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: ftp\r\nX-Forwarded-Host: evil\r\n\r\n",
	"headers": "GET %s HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test\r\nAccept-Encoding: br\r\nX-A: {env.HOME}\r\nx-a: 2\r\n" +
		"Cookie: a=1\r\nCookie: b=2\r\nVia: 1.1 before\r\nProxy-Connection: x\r\nKeep-Alive: 5\r\nProxy-Authorization: x\r\nX-Empty:\r\n\r\n",
	"trailers":       "GET %s HTTP/1.1\r\nHost: a.example\r\nTe: trailers\r\n\r\n",
	"old":            "GET %s HTTP/1.0\r\nHost: a.example\r\n\r\n",
	"unusual method": "PROPFIND %s HTTP/1.1\r\nHost: a.example\r\n\r\n",
}

// TestTheShortWayIsTheLongWay sends each request twice: as it is, and with an Incremental header. Apart from that,
// endpoint and client must not be able to tell.
func TestTheShortWayIsTheLongWay(t *testing.T) {
	got := make(chan string, 10)
	ip, port := recorder(t, got)
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"))
	for question, request := range asked {
		for answer := range answers {
			t.Run(question+", "+answer, func(t *testing.T) {
				short := in.converseRaw(fmt.Sprintf(request, "/"+answer), "", got)
				long := in.converseRaw(fmt.Sprintf(request, "/"+answer), "Incremental: ?0\r\n", got)
				if diff := cmp.Diff(long, short); diff != "" {
					t.Errorf("the short way is another one (-long +short):\n%s", diff)
				}
			})
		}
	}
}

// recorder is an endpoint that writes down what it gets, and answers as the first element of the path says.
func recorder(t *testing.T, got chan<- string) (ip, port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		head, body, _ := strings.Cut(string(dump), "\r\n\r\n")
		lines := slices.DeleteFunc(strings.Split(head, "\r\n"), func(s string) bool { return strings.HasPrefix(s, "Incremental:") })
		slices.Sort(lines[1:])
		got <- strings.Join(lines, "\n") + fmt.Sprintf("\n\n%s (%d)", body, r.ContentLength)
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, final.ReplaceAllString(answers[name], "${0}Connection: close\r\n"))
	}))
	t.Cleanup(server.Close)
	ip, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return ip, port
}

// conversation is what both sides see. An endpoint is asked more than once when it does not answer.
type conversation struct {
	Endpoint string
	Client   string
}

func (in *ingress) converseRaw(request, more string, got <-chan string) conversation {
	in.Helper()
	conn, err := net.Dial("tcp", in.http)
	if err != nil {
		in.Fatal(err)
	}
	defer conn.Close()
	line, rest, _ := strings.Cut(request, "\r\n")
	if _, err := fmt.Fprintf(conn, "%s\r\nX-Request-Id: fixed\r\n%s%s", line, more, rest); err != nil {
		in.Fatal(err)
	}
	var c conversation
	c.Client = in.answer(bufio.NewReader(conn), strings.Fields(line)[0])
	select {
	case c.Endpoint = <-got:
	default:
	}
	for len(got) > 0 {
		<-got
	}
	return c
}

// answer reads answers up to the last one, and writes them down.
func (in *ingress) answer(reader *bufio.Reader, method string) string {
	in.Helper()
	var all strings.Builder
	for {
		response, err := http.ReadResponse(reader, &http.Request{Method: method})
		if err != nil {
			in.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		response.Header.Del("Date")
		var header bytes.Buffer
		if err := response.Header.Write(&header); err != nil {
			in.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %s %d %v\n%s\n%s %v\n%v\n", response.Proto, response.Status, response.ContentLength,
			response.TransferEncoding, header.String(), strconv.Quote(string(body)), err, response.Trailer)
		if response.StatusCode >= http.StatusOK || response.StatusCode == http.StatusSwitchingProtocols {
			return all.String()
		}
	}
}
