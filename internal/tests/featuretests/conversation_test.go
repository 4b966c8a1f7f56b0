package featuretests

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// final matches the status line of a final response. If the endpoint did not announce that it closes the connection,
// it would be random whether the client notices before its next request.
var final = regexp.MustCompile(`HTTP/1\.1 [2-9]\d\d [^\r]*\r\n`)

// answers maps names to the raw responses of an endpoint. The endpoint announces that it closes the connection, and
// closes it after each response. Responses that are streamed have a content type.
var answers = map[string]string{
	"plain":        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\n\r\nok",
	"no-type":      "HTTP/1.1 200 OK\r\nContent-Length: 15\r\n\r\n<html>ok</html>",
	"empty":        "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
	"not-modified": "HTTP/1.1 304 Not Modified\r\nEtag: \"x\"\r\nContent-Length: 5\r\n\r\n",
	"error":        "HTTP/1.1 500 Oops\r\nContent-Length: 1\r\n\r\nx",
	"strange":      "HTTP/1.1 799 Strange\r\nContent-Length: 1\r\n\r\nx",
	"redirect":     "HTTP/1.1 302 Found\r\nLocation: /elsewhere?x={env.HOME}\r\nContent-Length: 0\r\n\r\n",
	"cookies":      "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n",
	"hop-by-hop": "HTTP/1.1 200 OK\r\nConnection: X-Secret, close\r\nX-Secret: 1\r\nKeep-Alive: " +
		"timeout=5\r\nContent-Length: 2\r\n\r\nok",
	"own-headers": "HTTP/1.1 200 OK\r\nServer: mine\r\nVia: 1.1 other\r\nDate: Mon, 02 Jan 2006 15:04:05 " +
		"GMT\r\nContent-Length: 2\r\n\r\nok",
	"chunked": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\nTrailer: X-Sum\r\n\r\n" +
		"2\r\nok\r\n0\r\nX-Sum: 7\r\n\r\n",
	"late-trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: " +
		"text/plain\r\n\r\n2\r\nok\r\n0\r\nX-Late: 7\r\n\r\n",
	"until-close":   "HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nok",
	"events":        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n",
	"early-hints":   "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"continue":      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"compressed":    "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\ngzip",
	"no-http":       "SSH-2.0-OpenSSH\r\n\r\n",
	"two-lengths":   "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
	"splits":        "HTTP/1.1 200 OK\r\nX-A: a\rSet-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok",
	"folds":         "HTTP/1.1 200 OK\r\nX-A: a\r\n Set-Cookie: evil=1\r\nContent-Length: 2\r\n\r\nok",
	"has-a-nul":     "HTTP/1.1 200 OK\r\nX-A: a\x00b\r\nContent-Length: 2\r\n\r\nok",
	"bare-lf":       "HTTP/1.1 200 OK\nConnection: close\nX-A: a\nContent-Length: 2\n\nok",
	"both-framings": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"twice":         "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
	"switches":      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
	"many-fields":   "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-A: b\r\n", 2000) + "\r\n",
	"large-head":    "HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
	"large":         "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + strings.Repeat("x", 100000),
	"nothing":       "",
}

// asked are requests. Their paths lack the name of the response as a prefix. Requests with their own request line can
// only be sent over HTTP/1.
var asked = map[string]question{
	"GET":              {},
	"HEAD":             {method: "HEAD"},
	"POST":             {method: "POST", body: []string{"body"}},
	"POST of nothing":  {method: "POST", body: []string{""}},
	"DELETE with body": {method: "DELETE", body: []string{"body"}},
	"unknown length":   {method: "PUT", body: []string{"bo", "dy"}},
	"query":            {path: "?a=%7Benv.HOME%7D&b=c+d&e;f"},
	"escapes":          {path: "/%2e%2E/%2F/%7benv.HOME%7d;x=1"},
	"host with port":   {host: "A.Example:80"},
	"forged": {fields: []string{"X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: ftp",
		"X-Forwarded-Host: evil"}},
	"headers": {fields: []string{
		"User-Agent: test", "Accept-Encoding: br", "X-A: {env.HOME}", "x-a: 2", "Via: 1.1 before",
		"Proxy-Authorization: x", "X-Empty: ",
	}},
	"trailers":       {fields: []string{"Te: trailers"}},
	"unusual method": {method: "PROPFIND"},
	"whole URL":      {line: "GET http://a.examplePATH HTTP/1.1", host: "other.example"},
	"old":            {line: "GET PATH HTTP/1.0"},
	"of a connection": {line: "GET PATH HTTP/1.1", fields: []string{
		"Cookie: a=1", "Cookie: b=2", "Proxy-Connection: x", "Keep-Alive: 5", "Connection: X-B", "X-B: 1",
	}},
}

// conversation holds the bytes that both sides see.
type conversation struct{ Endpoint, Client string }

// TestConversations sends each kind of request for each kind of response over each version of HTTP. It checks that the
// endpoint and the client cannot detect the version, except by the fields that name it.
func TestConversations(t *testing.T) {
	got := make(chan string, 10)
	ip, port := recorder(t, got)
	in := start(t, class+service("one", port, ip)+rule("a", "a.example", "Prefix", "/", "one"),
		"error_bodies off")
	wanted := map[string]conversation{}
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for asks, q := range asked {
			if q.line != "" && in.version != plain1 && in.version != secure1 {
				continue
			}
			for answer := range answers {
				name := asks + ", " + answer
				heard := in.conversation(q, answer, got)
				// The responses over HTTP/1.1 without TLS come first, and are compared with the other versions.
				if _, ok := wanted[name]; !ok {
					wanted[name] = heard
				}
				if diff := cmp.Diff(wanted[name], heard); diff != "" {
					t.Errorf("%s is another conversation (-%s +%s):\n%s", name, plain1, in.version, diff)
				}
			}
		}
	})
	in.soundAnswers(t, wanted)
}

// soundAnswers checks the responses to clients whose endpoints try to smuggle a forged response.
func (in *ingress) soundAnswers(t *testing.T, all map[string]conversation) {
	t.Helper()
	for answer, want := range map[string]string{
		"plain": "200", "splits": "502", "folds": "502", "has-a-nul": "502", "two-lengths": "502", "switches": "502",
		"many-fields": "502",
		"large-head":  "502", "no-http": "502", "nothing": "502", "bare-lf": "200", "both-framings": "200",
		"twice": "200", "strange": "799",
	} {
		heard := all["GET, "+answer].Client
		if !strings.HasPrefix(heard, want+"\n") || strings.Contains(heard, "evil") {
			t.Errorf("%s: clients are answered %.200q, want %s", answer, heard, want)
		}
	}
}

// versioned matches the header lines that describe how the client's request arrived.
var versioned = regexp.MustCompile(`(?m)^(X-Forwarded-(Port|Proto|Scheme)|X-Scheme): .*\n?`)

// recorder starts an endpoint that records its requests, and responds according to the first element of the path.
func recorder(t *testing.T, got chan<- string) (ip, port string) {
	t.Helper()
	return endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		head, body, _ := strings.Cut(string(dump), "\r\n\r\n")
		lines := strings.Split(head, "\r\n")
		slices.Sort(lines[1:])
		got <- versioned.ReplaceAllString(strings.Join(lines, "\n"), "") + fmt.Sprintf("\n\n%s (%d)", body,
			r.ContentLength)
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, final.ReplaceAllString(answers[name], "${0}Connection: close\r\n"))
	})
}

// aboutVersion lists the response headers that not all versions of HTTP have.
var aboutVersion = []string{"Alt-Svc", "Connection", "Content-Length", "Date", "Strict-Transport-Security", "Trailer"}

func (in *ingress) conversation(q question, answer string, got <-chan string) (c conversation) {
	in.Helper()
	path := "/" + answer + q.path
	q.path, q.line = path, strings.Replace(q.line, "PATH", path, 1)
	q.fields = append([]string{"X-Request-Id: fixed"}, q.fields...)
	heard := in.exchange(q.usual())
	for _, name := range aboutVersion {
		heard.fields.Del(name)
	}
	var client strings.Builder
	fmt.Fprintln(&client, heard.status)
	for _, name := range slices.Sorted(maps.Keys(heard.fields)) {
		fmt.Fprintf(&client, "%s: %q\n", name, heard.fields[name])
	}
	fmt.Fprintf(&client, "%q %q\nbefore it %q, behind it %v", heard.body, heard.broken, heard.interim,
		len(heard.trailers))
	for name, values := range heard.trailers {
		fmt.Fprintf(&client, " %s %q", name, values)
	}
	c.Client = client.String()
	select {
	case c.Endpoint = <-got:
	default:
	}
	for len(got) > 0 {
		<-got
	}
	return c
}
