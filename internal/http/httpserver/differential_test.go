package httpserver_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/differential"
)

// unlikeNetHTTP lists the intended differences from net/http.
var unlikeNetHTTP = []differential.Row{
	{Reason: "two errors, of which another one is found first", Is: func(d *differential.Difference) bool {
		return d.Got.Status >= http.StatusBadRequest && d.Want.Status >= http.StatusBadRequest
	}},
	refused("a bare LF is no end of a line: others take it for a part of one", "bare-lf"),
	refused("folded lines are two in the eyes of others", "folded-line"),
	refused("a length beside chunks is how requests are smuggled", "length-and-coding"),
	refused("HTTP/1.0 has no codings", "transfer-encoding-in-1.0"),
	refused("equal lengths are several, too", "two-content-lengths"),
	refused("a length with more digits than any body is too large", "content-length-too-large"),
	refused("what is no path and no URL of HTTP is for nobody", "target"),
	refused("CONNECT and TRACE are not served", "method-not-served"),
	refused("a host is a name or an address, and a port has digits", "host", "no-host"),
	example(crlf("CONNECT  HTTP/1.1", "Host: a"), refused("a request line has a target", "request-line")),
	example(crlf("POST / HTTP/1.1", "Host: a", "Content-Length: 0")+"\r"+crlf("GET / HTTP/1.1", "Host: a"),
		refused("a lone CR is no empty line, also not behind the body of a POST", "method")),
	refused("a NUL in a path ends it for others", "nul-in-path"),
	refused("there is no HTTP/1.2", "version"),
	refused("nothing is known of an Expect but 100-continue", "expect"),
	example(crlf("GET / HTTP/1.1", "Host: a", "Authorization: x", "Authorization: x"),
		refused("two lines of credentials are two clients in the eyes of others", "two-authorizations")),
	refused("fields are bounded by their number as well", "many-fields"),
	refused("heads are smaller", "head-too-large"),
	{Reason: "empty lines in front of a request are tolerated", Is: func(d *differential.Difference) bool {
		return d.Want.Status == http.StatusBadRequest && d.Got.Status < http.StatusBadRequest &&
			strings.Contains(d.Text, "\r\n")
	}},
	{Reason: "a body in chunks breaks off where something is strange, others read some of it or all",
		Is: func(d *differential.Difference) bool {
			return strings.Contains(d.Got.Text, broken)
		}},
	{Reason: "spaces in front of an extension of a chunk are allowed by RFC 9112 7.1.1",
		Is: func(d *differential.Difference) bool {
			return strings.Contains(d.Want.Text, broken) &&
				(strings.Contains(d.Text, " ;") || strings.Contains(d.Text, "\t;"))
		}},
	{Reason: "who asks for the end of the connection gets it, whatever else Connection says",
		Is: func(d *differential.Difference) bool {
			return strings.Contains(d.Got.Text, "HTTP/1.0") && strings.Contains(strings.ToLower(d.Text), "close")
		}, Example: crlf("GET / HTTP/1.0", "Host: a", "Connection: keep-alive, close")},
	{Reason: "options of Connection have commas in between: for net/http spaces and tabs are enough",
		Is: func(d *differential.Difference) bool {
			return spaced.MatchString(d.Text) && d.Got.Status == d.Want.Status
		}, Example: crlf("GET / HTTP/1.1", "Host: a", "Connection: keep-alive\tclose")},
	{Reason: "a refusal of HEAD has no body, which would say why", Is: func(d *differential.Difference) bool {
		return d.Got.Status >= http.StatusBadRequest && d.Got.Reason == "" && strings.Contains(d.Text, "HEAD")
	}, Example: crlf("HEAD / HTTP/1.2", "Host: a")},
}

// spaced matches options of Connection without a comma between them.
var spaced = regexp.MustCompile(`(?i)connection:[^\r\n]*[^\r\n, \t][ \t]+(close|keep-alive)`)

// broken marks a body that could not be read in the output of seen.
const broken = " broken\n"

// refused returns a row for requests that are rejected here and accepted by net/http.
func refused(why string, reasons ...string) differential.Row {
	return differential.Row{Reason: why, Is: func(d *differential.Difference) bool { return d.Refused(reasons...) }}
}

func example(request string, row differential.Row) differential.Row {
	row.Example = request
	return row
}

// TestLikeNetHTTP sends the same requests to our server and to net/http, with a handler that returns the request as it
// sees it.
func TestLikeNetHTTP(t *testing.T) {
	comparison := &differential.Comparison{
		Ours:   serve(t, func(w message.Writer, r *message.Request) { answerSeen(w, r) }, nil).address,
		Theirs: netHTTP(t), Rows: unlikeNetHTTP, Requests: 10_000, HalfClose: true,
		Tell: func(response *http.Response, body []byte, err error) string {
			if response.StatusCode >= http.StatusBadRequest {
				return fmt.Sprint(response.StatusCode, response.Close)
			}
			return fmt.Sprint(response.StatusCode, response.Proto, len(body), err, response.ContentLength,
				response.Close,
				differential.SeenOf(response))
		},
	}
	comparison.Run(t)
}

// seen describes a request as a handler sees it.
func seen(r *message.Request, body []byte, err error) string {
	header := r.Fields.Header()
	for _, name := range []string{"Trailer", "Expect", "Cache-Control", "Content-Length"} {
		delete(header, name)
	}
	for _, values := range header {
		for i := range values {
			values[i] = differential.Digest(values[i])
		}
	}
	var lines bytes.Buffer
	_ = header.Write(&lines)
	state := "whole"
	if err != nil {
		state = "broken"
	}
	return fmt.Sprintf("%s %q %s %s %s %d %q %s\n%s", r.Method, r.Path, differential.Digest(r.OutTarget()), r.Host,
		r.Protocol(), r.Length,
		differential.Digest(string(body)), state, differential.Digest(lines.String()))
}

func answerSeen(w message.Writer, r *message.Request) {
	var body []byte
	var err error
	if r.Body != nil {
		body, err = io.ReadAll(r.Body)
	}
	answer(w, 200, "seen", message.NewField(differential.Seen, differential.Quote(seen(r, body, err))))
}

func netHTTP(t *testing.T) string {
	t.Helper()
	server := &http.Server{ErrorLog: zap.NewStdLog(zap.NewNop()), ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(
			func(w http.ResponseWriter, from *http.Request) {
				body, err := io.ReadAll(from.Body)
				delete(from.Header, "X A") // net/http keeps fields with such names.
				var r message.Request
				r.FromHTTP(from)
				if r.Path == "" {
					r.SetPath("/")
				}
				w.Header().Set(differential.Seen, differential.Quote(seen(&r, body, err)))
				w.Header().Set("Content-Length", "4")
				_, _ = io.WriteString(w, "seen")
			})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}
