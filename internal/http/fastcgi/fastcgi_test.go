package fastcgi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/k8singress/k8singress/internal/http/fastcgi"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// record returns a record as an application writes it.
func record(kind byte, id uint16, content string, padding int) string {
	head := []byte{1, kind, byte(id >> 8), byte(id), byte(len(content) >> 8), byte(len(content)), byte(padding), 0}
	return string(head) + content + strings.Repeat("x", padding)
}

const (
	end, stdout, stderr = 3, 6, 7

	done = "\x00\x00\x00\x01\x00\x00\x00\x00"
)

func read(text io.Reader, method string) (status int, header http.Header, body string, err error) {
	response, err := fastcgi.ReadResponse(text, &http.Request{Method: method})
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(all), err
}

func TestResponses(t *testing.T) {
	ends := record(end, 1, done, 0)
	for name, c := range map[string]struct{ method, in, want string }{
		"plain":             {"GET", record(stdout, 1, "A: b\r\n\r\nbody", 0) + ends, "200 map[A:[b]] body"},
		"lines end with LF": {"GET", record(stdout, 1, "A: b\n\nbody", 3) + ends, "200 map[A:[b]] body"},
		"no headers":        {"GET", record(stdout, 1, "\r\nbody", 0) + ends, "200 map[] body"},
		"a status":          {"GET", record(stdout, 1, "Status: 404 Not Found\r\n\r\n", 0) + ends, "404 map[] "},
		"a redirect": {"GET", record(stdout, 1, "Location: /x\r\n\r\n", 0) + ends,
			"302 map[Location:[/x]] "},
		"a redirect and status": {"GET", record(stdout, 1, "Location: /x\r\nStatus: 201\r\n\r\n", 0) + ends,
			"201 map[Location:[/x]] "},
		"in pieces": {
			"GET", record(stdout, 1, "A: ", 5) + record(stderr, 1, "PHP Notice", 2) + record(stdout, 1,
				"b\r\n\r\nbo", 0) +
				record(stdout, 2, "not this", 0) + record(10, 0, "about nothing", 0) + record(stdout, 1, "dy", 0) +
				ends, "200 map[A:[b]] body",
		},
		"the end of the output": {"GET", record(stdout, 1, "\r\nbody", 0) + record(stdout, 1, "", 0), "200 map[] body"},
		"a length": {"GET", record(stdout, 1, "Content-Length: 4\r\n\r\nbody and more", 0),
			"200 map[Content-Length:[4]] body"},
		"HEAD": {"HEAD", record(stdout, 1, "Content-Length: 4\r\n\r\n", 0),
			"200 map[Content-Length:[4]] "},
		"not modified": {"GET", record(stdout, 1, "Status: 304\r\nContent-Length: 4\r\n\r\n", 0),
			"304 map[Content-Length:[4]] "},
		"a coding": {"GET", record(stdout, 1, "Transfer-Encoding: chunked\r\n\r\nbody", 0) + ends,
			"200 map[] body"},
		"its own failure": {"GET",
			record(stdout, 1, "\r\nbody", 0) + record(end, 1, "\x00\x00\x00\x07\x00\x00\x00\x00", 0), "200 map[] body"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
				status, header, body, err := read(in, c.method)
				if got := fmt.Sprint(status, " ", header, " ", body); got != c.want || err != nil {
					t.Errorf("got %s, %v, want %s", got, err, c.want)
				}
			}
		})
	}
}

func TestInvalidResponses(t *testing.T) {
	ends := record(end, 1, done, 0)
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"HTTP":                {"HTTP/1.1 200 OK\r\n\r\n", fastcgi.ErrInvalid},
		"empty":               {ends, fastcgi.ErrInvalid},
		"no end of the head":  {record(stdout, 1, "A: b\r\n", 0) + ends, fastcgi.ErrInvalid},
		"no head":             {record(stdout, 1, "<html>\r\n\r\n", 0) + ends, fastcgi.ErrInvalid},
		"a status in words":   {record(stdout, 1, "Status: OK\r\n\r\n", 0) + ends, fastcgi.ErrInvalid},
		"a status in between": {record(stdout, 1, "Status: 101\r\n\r\n", 0) + ends, fastcgi.ErrInvalid},
		"a length in words":   {record(stdout, 1, "Content-Length: x\r\n\r\n", 0) + ends, fastcgi.ErrInvalid},
		"a length below zero": {record(stdout, 1, "Content-Length: -1\r\n\r\n", 0) + ends, fastcgi.ErrInvalid},
		"two lengths": {record(stdout, 1, "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 0) + ends,
			fastcgi.ErrInvalid},
		"a short end":           {record(end, 1, "", 0), fastcgi.ErrInvalid},
		"closed at once":        {"", io.ErrUnexpectedEOF},
		"closed in a record":    {record(stdout, 1, "\r\nbody", 0)[:12], io.ErrUnexpectedEOF},
		"closed before the end": {record(stdout, 1, "\r\nbody", 0), io.ErrUnexpectedEOF},
		"shorter than it says":  {record(stdout, 1, "Content-Length: 5\r\n\r\nbody", 0) + ends, io.ErrUnexpectedEOF},
		"a head without end": {strings.Repeat(record(stdout, 1, "A: "+strings.Repeat("b", 60000)+"\r\n", 0), 20),
			fastcgi.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if status, header, body, err := read(strings.NewReader(c.in), http.MethodGet); !errors.Is(err, c.want) {
				t.Errorf("got %d %v %q, %v", status, header, body, err)
			}
		})
	}
	overloaded := record(end, 1, "\x00\x00\x00\x00\x02\x00\x00\x00", 0)
	if _, _, _, err := read(strings.NewReader(overloaded), http.MethodGet); err == nil ||
		!strings.Contains(err.Error(), "rejects") {
		t.Errorf("the error of an overloaded application is %v", err)
	}
}

// TestRequests checks that the standard library's FastCGI server can read the requests.
func TestRequests(t *testing.T) {
	long := strings.Repeat("y", 200_000)
	list := []fastcgi.Param{
		{"REQUEST_METHOD", "PUT"}, {"SERVER_PROTOCOL", "HTTP/1.1"}, {"REQUEST_URI", "/x"}, {"HTTP_HOST", "a.example"},
		{"CONTENT_LENGTH", "150000"}, {"HTTP_X_LONG", long}, {"MINE", ""},
		{strings.Repeat("N", 300), strings.Repeat("v", 127)},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		_ = fcgi.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			env := fcgi.ProcessEnv(r)
			fmt.Fprintf(w, "%s %s %t %t %d %v", r.Method, r.Host, r.Header.Get("X-Long") == long,
				env[strings.Repeat("N", 300)] == strings.Repeat("v", 127), len(body), err)
		}))
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := fastcgi.WriteParams(conn, list); err != nil {
		t.Fatal(err)
	}
	if err := fastcgi.WriteBody(conn, strings.NewReader(long[:150_000])); err != nil {
		t.Fatal(err)
	}
	status, _, body, err := read(conn, http.MethodPut)
	if err != nil || status != http.StatusOK || body != "PUT a.example true true 150000 <nil>" {
		t.Errorf("got %d %q %v", status, body, err)
	}
}

func TestUnwritableRequests(t *testing.T) {
	large := []fastcgi.Param{{"HTTP_X", strings.Repeat("x", 5<<20)}}
	if err := fastcgi.WriteParams(io.Discard, large); !errors.Is(err, fastcgi.ErrTooLarge) {
		t.Errorf("large parameters: %v", err)
	}
	breaks := iotest.ErrReader(errors.New("fault"))
	if err := fastcgi.WriteBody(io.Discard, breaks); !errors.Is(err, fastcgi.ErrBody) {
		t.Errorf("a body that breaks off: %v", err)
	}
}

// FuzzReadResponse checks that no input causes a panic, and that the result does not depend on the pieces in which the
// input arrives.
func FuzzReadResponse(f *testing.F) {
	f.Add(record(stdout, 1, "Status: 404 Not Found\r\nContent-Length: 2\r\n\r\nab", 3) + record(end, 1, done, 0))
	f.Add(record(stderr, 1, "x", 1) + record(stdout, 1, "A: b\n\nbody", 0) + record(stdout, 1, "", 0))
	f.Add(record(end, 1, done, 0))
	f.Fuzz(func(t *testing.T, text string) {
		status, header, body, err := read(strings.NewReader(text), http.MethodGet)
		status2, header2, body2, err2 := read(iotest.OneByteReader(strings.NewReader(text)), http.MethodGet)
		if status != status2 || body != body2 || fmt.Sprint(header) != fmt.Sprint(header2) ||
			(err == nil) != (err2 == nil) {
			t.Errorf("%d %v %q %v at once, %d %v %q %v in pieces", status, header, body, err, status2,
				header2, body2, err2)
		}
		if err == nil && (status < 200 || status > 999) {
			t.Errorf("the status is %d", status)
		}
	})
}

// FuzzHead checks that each accepted head has one status and one length.
func FuzzHead(f *testing.F) {
	f.Add("Status: 200 OK\r\nContent-Length: 1\r\n\r\nx")
	f.Add("Location: /\nStatus:\n\n")
	f.Fuzz(func(t *testing.T, head string) {
		if len(head) > 65535 {
			return
		}
		in := record(stdout, 1, head, 0) + record(end, 1, done, 0)
		_, header, _, err := read(strings.NewReader(in), http.MethodGet)
		if err != nil {
			return
		}
		if _, has := header["Status"]; has || len(header["Content-Length"]) > 1 {
			t.Errorf("the headers are %v", header)
		}
	})
}

// FuzzParams checks that written parameters can be read back.
func FuzzParams(f *testing.F) {
	f.Add("NAME", "value")
	f.Fuzz(func(t *testing.T, name, value string) {
		var b bytes.Buffer
		if err := fastcgi.WriteParams(&b, []fastcgi.Param{{name, value}, {"LAST", "x"}}); err != nil {
			return
		}
		if got := pairs(t, b.Bytes()); !slices.Equal(got, []string{name, value, "LAST", "x"}) {
			t.Errorf("%q became %q", []string{name, value}, got)
		}
	})
}

// pairs decodes the records of parameters.
func pairs(t *testing.T, wire []byte) []string {
	t.Helper()
	var text []byte
	for len(wire) >= 8 {
		n := int(wire[4])<<8 | int(wire[5])
		if wire[1] == 4 {
			text = append(text, wire[8:8+n]...)
		}
		wire = wire[8+n+int(wire[6]):]
	}
	return fixture.FastCGIParams(text)
}
