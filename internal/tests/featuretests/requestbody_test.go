package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestBodies checks that bodies arrive unchanged in both directions, with and without a known length.
func TestBodies(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %v %s %v", r.Method, r.ContentLength, r.TransferEncoding, hash(body), err)
	}, "proxy-body-size: 8m")
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 3 << 20} {
				sent := pattern(size)
				want := fmt.Sprintf("%s %d [] %s <nil>", method, size, hash(sent))
				for known, body := range map[bool]io.Reader{
					true: strings.NewReader(string(sent)), false: struct{ io.Reader }{strings.NewReader(string(sent))},
				} {
					if got := in.send(method, "/", body); got.body != want {
						t.Errorf("%d bytes, length known %v: %q, not %q", size, known, got.body, want)
					}
				}
			}
		}
	})
}

// TestSlowUpload checks that the endpoint gets a request body when it is complete, with buffering, and piece by piece
// without.
func TestSlowUpload(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		pieces := make(chan string, 10)
		in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
			piece := make([]byte, 5)
			for {
				n, err := io.ReadFull(r.Body, piece)
				if n > 0 {
					pieces <- string(piece[:n])
				}
				if err != nil {
					break
				}
			}
			fmt.Fprint(w, r.ContentLength)
		}, "proxy-request-buffering: "+buffering)
		in.byEachVersion(t, func(t *testing.T, in *ingress) { in.uploads(t, buffering == "on", pieces) })
		in.stop()
	}
}

func (in *ingress) uploads(t *testing.T, buffered bool, pieces <-chan string) {
	reader, writer := io.Pipe()
	answers := make(chan answer, 1)
	go func() { answers <- in.send(http.MethodPost, "/", reader) }()
	_, _ = io.WriteString(writer, "first") // The client reports the error.
	want := "10"
	if !buffered {
		want = "-1"
		if got := await(t, "the first piece", pieces); got != "first" {
			t.Errorf("got %q", got)
		}
	}
	_, _ = io.WriteString(writer, "again")
	_ = writer.Close()
	if got := await(t, "the answer", answers); got.body != want {
		t.Errorf("%d %q, not %q", got.status, got.body, want)
	}
	for len(pieces) > 0 {
		<-pieces
	}
}

// TestBothWaysAtOnce checks that a response can start long before the request has ended.
func TestBothWaysAtOnce(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		w.WriteHeader(http.StatusOK)
		piece := make([]byte, 32<<10)
		for {
			n, err := r.Body.Read(piece)
			_, _ = w.Write(piece[:n])
			_ = http.NewResponseController(w).Flush()
			if err != nil {
				return
			}
		}
	}, "proxy-request-buffering: off", "proxy-body-size: 0")
	sent := pattern(5 << 20)
	in.byEachVersion(t, func(t *testing.T, in *ingress) {
		reader, writer := io.Pipe()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.origin("a.example"), reader)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = writer.Write(sent[:10]) }()
		response, err := in.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(response.Body, got[:10]); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = writer.Write(sent[10:])
			_ = writer.Close()
		}()
		if n, err := io.ReadFull(response.Body, got[10:]); err != nil || hash(got) != hash(sent) {
			t.Errorf("%d of %d bytes come back, %v", n+10, len(sent), err)
		}
	})
}

// TestBodyTooLarge checks that a request body that is too large is rejected, whether or not its length is known, and
// is not read to its end.
func TestBodyTooLarge(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}, "proxy-request-buffering: "+buffering)
		in.byEachVersion(t, func(t *testing.T, in *ingress) { in.limits(t) })
		in.byHTTP1(t, func(t *testing.T, in *ingress) { in.limitsUnread(t) })
		in.stop()
	}
}

// limits sends bodies of exactly one MiB, and of one byte more.
func (in *ingress) limits(t *testing.T) {
	for size, want := range map[int]int{1 << 20: http.StatusOK, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
		text := string(pattern(size))
		for known, body := range map[bool]io.Reader{true: strings.NewReader(text),
			false: struct{ io.Reader }{strings.NewReader(text)}} {
			if got := in.send(http.MethodPost, "/", body); got.status != want {
				t.Errorf("%d bytes, length known %v: %d %q", size, known, got.status, got.body)
			}
		}
	}
}

// limitsUnread sends the start of endless bodies. If the length or a chunk size is already too large, it sends no bytes
// of the body.
func (in *ingress) limitsUnread(t *testing.T) {
	chunks := func(size, number int) string {
		return strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", size, pattern(size)), number)
	}
	for name, c := range map[string]struct{ field, body string }{
		"a length":         {field: "Content-Length: 1000000000"},
		"a chunk":          {"Transfer-Encoding: chunked", "fffffffffff\r\n"},
		"the second chunk": {"Transfer-Encoding: chunked", chunks(5, 1) + "fffffffffff\r\n"},
		"many chunks":      {"Transfer-Encoding: chunked", chunks(1<<15, 33)},
	} {
		d := in.connect()
		d.say("%s%s", head("POST / HTTP/1.1", c.field), c.body)
		if got := d.head(http.MethodPost); got.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %s", name, got.Status)
		}
	}
}

// TestAStreamIsNotSentTwice checks that no other endpoint gets the rest of a body after one endpoint got its start.
func TestAStreamIsNotSentTwice(t *testing.T) {
	asked := &log{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
		asked.add("%s", r.Method)
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}))
	t.Cleanup(server.Close)
	ip, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	in := inFrontOf(t, ip, port, "proxy-request-buffering: off",
		"proxy-next-upstream: error timeout http_503 non_idempotent")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for _, method := range []string{"PUT", "POST"} {
			d := in.connect()
			d.say("%s5\r\nfirst\r\n", head(method+" / HTTP/1.1", "Transfer-Encoding: chunked"))
			// The client may only notice the endpoint's end when it sends more.
			go func() {
				for {
					if _, err := io.WriteString(d, "5\r\nagain\r\n"); err != nil {
						return
					}
				}
			}()
			if got := d.head(method); got.StatusCode != http.StatusBadGateway {
				t.Errorf("%s: %s", method, got.Status)
			}
			_ = d.Close()
			if got := asked.take(); len(got) != 1 {
				t.Errorf("%s: endpoints are asked %d times", method, len(got))
			}
		}
	})
}
