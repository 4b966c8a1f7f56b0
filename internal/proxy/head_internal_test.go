package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// taken are heads that are read from the buffer; left are those that are left to net/http.
var taken, left = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n",
	"HTTP/1.1 404 Not Found\r\nServer: x\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\nDate: now\r\n\r\nno\n",
	"HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\nX-EMPTY:\r\nX-Tab: a\tb\r\nContent-Length: 10\r\n\r\nshort",
	"HTTP/1.1 503 \r\nConnection: Keep-Alive\r\nKeep-Alive: timeout=5\r\nX: \xff\r\nContent-Length: 000002\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
}, []string{
	"", "\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n",
	"HTTP/1.1 200 OK\nContent-Length: 3\n\nok\n",
	"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
	"HTTP/1.1  200 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 +20 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 2000 OK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 200 O\nK\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nok\n\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding : chunked\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nok\n\r\n0\r\nX: y\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: a\r\n b\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\n Content-Length: 3\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: a\x00b\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: a\rb\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX: a\nb: c\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n: x\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nX(: x\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: X-Own\r\nX-Own: x\r\n\r\nok\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nPragma: no-cache\r\n\r\nok\n",
}

func filled(text string) *bufio.Reader {
	reader := bufio.NewReaderSize(strings.NewReader(text), max(16, len(text)))
	_, _ = reader.Peek(1)
	return reader
}

func TestHeadsThatAreTaken(t *testing.T) {
	var h head
	for _, text := range taken {
		if !h.read(filled(text)) {
			t.Errorf("%q is left", text)
		}
	}
	for _, text := range left {
		reader := filled(text)
		if h.read(reader) {
			t.Errorf("%q is taken", text)
		}
		if rest, _ := io.ReadAll(reader); string(rest) != text {
			t.Errorf("of %q there is only %q left", text, rest)
		}
	}
}

// What is taken is what net/http reads: status, headers, body, and where the next answer begins.
func FuzzHead(f *testing.F) {
	for _, text := range append(taken, left...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, reader, theirs := head{}, filled(text), filled(text)
		if !h.read(reader) {
			return
		}
		response, err := http.ReadResponse(theirs, nil)
		if err != nil {
			t.Fatalf("net/http refuses %q: %v", text, err)
		}
		defer response.Body.Close()
		got, want := http.Header{"Set-Cookie": {"before"}}, http.Header{"Set-Cookie": {"before"}, "Via": {"1.1 Caddy"}}
		h.copyTo(got)
		copyHeader(want, response.Header)
		if h.status != response.StatusCode || h.length != response.ContentLength || !reflect.DeepEqual(got, want) || response.Close {
			t.Fatalf("%q: %d, %d, %v; net/http: %+v", text, h.status, h.length, got, response)
		}
		body, err := io.ReadAll(&counted{reader, h.length})
		wanted, wantedErr := io.ReadAll(response.Body)
		if !bytes.Equal(body, wanted) || (err == nil) != (wantedErr == nil) {
			t.Fatalf("%q has the body %q (%v); net/http: %q (%v)", text, body, err, wanted, wantedErr)
		}
		if rest, theirs := reader.Buffered(), theirs.Buffered(); rest != theirs {
			t.Fatalf("behind %q there are %d bytes; net/http: %d", text, rest, theirs)
		}
	})
}
