package featuretests

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBodies compares bodies at both ends, with and without a length that is known before.
func TestBodies(t *testing.T) {
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %d %v %s %v", r.Method, r.ContentLength, r.TransferEncoding, hash(body), err)
	}, "proxy-body-size: 8m")
	for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
		for _, size := range []int{0, 1, 64 << 10, 64<<10 + 1, 3 << 20} {
			sent := pattern(size)
			want := fmt.Sprintf("%s %d [] %s <nil>", method, size, hash(sent))
			for _, way := range ways {
				for known, body := range map[bool]io.Reader{
					true: strings.NewReader(string(sent)), false: struct{ io.Reader }{strings.NewReader(string(sent))},
				} {
					if got := in.send(method, "/", body, byWay(way)...); got.body != want {
						t.Errorf("%d bytes, length known %v, %s way: %q, not %q", size, known, way, got.body, want)
					}
				}
			}
		}
	}
}

// TestSlowUpload: with buffering the endpoint gets a body when it is complete, and without it piece by piece.
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
		d := in.connect()
		d.say("%s5\r\nfirst\r\n", head("POST / HTTP/1.1", "Transfer-Encoding: chunked"))
		want := "200 10"
		if buffering == "off" {
			want = "200 -1"
			if got := await(t, "the first piece", pieces); got != "first" {
				t.Errorf("got %q", got)
			}
		} else {
			select {
			case got := <-pieces:
				t.Errorf("%q comes too soon", got)
			case <-time.After(100 * time.Millisecond):
			}
		}
		d.say("5\r\nagain\r\n0\r\n\r\n")
		if got := d.hear(http.MethodPost); got != want {
			t.Errorf("buffering %s: %q, not %q", buffering, got, want)
		}
		in.stop()
	}
}

// TestBothWaysAtOnce: an answer may begin long before the request has ended.
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
	for name, client := range in.fronts() {
		t.Run(name, func(t *testing.T) {
			reader, writer := io.Pipe()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://a.example/", reader)
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = writer.Write(sent[:10]) }()
			response, err := client.Do(request)
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
}

// TestBodyTooLarge: a body that is too large is refused whether or not its length is known, and not read to its end.
func TestBodyTooLarge(t *testing.T) {
	for _, buffering := range []string{"on", "off"} {
		in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, err)
		}, "proxy-request-buffering: "+buffering)
		for name, client := range in.fronts() {
			for _, way := range ways {
				t.Run(fmt.Sprintf("buffering %s, %s, %s way", buffering, name, way), func(t *testing.T) { in.limits(t, client, way) })
			}
		}
		for _, headers := range []string{"Content-Length: 1000000000", "Transfer-Encoding: chunked"} {
			d := in.connect()
			d.say("%s", head("POST / HTTP/1.1", headers))
			if strings.HasPrefix(headers, "Transfer") {
				go func() { _, _ = fmt.Fprintf(d, "%x\r\n%s", 1<<30, strings.Repeat("x", 8<<20)) }()
			}
			if got := d.head(http.MethodPost); got.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("buffering %s, %s: %s", buffering, headers, got.Status)
			}
		}
		in.stop()
	}
}

// limits sends bodies of a MiB, and of one byte more.
func (in *ingress) limits(t *testing.T, client *http.Client, way string) {
	for size, want := range map[int]int{1 << 20: http.StatusOK, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
		text := string(pattern(size))
		for known, body := range map[bool]io.Reader{true: strings.NewReader(text), false: struct{ io.Reader }{strings.NewReader(text)}} {
			if got := in.sendBy(client, "https://a.example/", http.MethodPost, body, byWay(way)...); got.status != want {
				t.Errorf("%d bytes, length known %v: %d %q", size, known, got.status, got.body)
			}
		}
	}
}

// TestAStreamIsNotSentTwice: nobody else gets the rest of a body of which an endpoint has got the beginning.
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
	in := inFrontOf(t, ip, port, "proxy-request-buffering: off", "proxy-next-upstream: error timeout http_503 non_idempotent")
	for _, method := range []string{"PUT", "POST"} {
		d := in.connect()
		d.say("%s5\r\nfirst\r\n", head(method+" / HTTP/1.1", "Transfer-Encoding: chunked"))
		// net/http notices the end of the endpoint when there is something more to send.
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
}
