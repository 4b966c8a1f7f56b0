package featuretests

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/k8singress/k8singress/internal/fixture"
)

// clientGone is nginx's status for a client that has left.
const clientGone = 499

// TestSlowClients: one that takes its time for a head, a body or an answer is cut off when it pauses for too long.
func TestSlowClients(t *testing.T) {
	ended := make(chan error, 10)
	ip, port := endpointOf(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			piece := make([]byte, 1<<20)
			for {
				if _, err := w.Write(piece); err != nil {
					ended <- err
					return
				}
			}
		}
		_, _ = io.Copy(w, r.Body)
	})
	for _, buffering := range []string{"on", "off"} {
		in := newIngress(t)
		in.write("manifests.yaml", class+service("one", port, ip)+oneWith("proxy-request-buffering: "+buffering))
		in.http = in.behindASite(map[string]any{
			"read_header_timeout": "400ms", "read_idle_timeout": "400ms", "write_idle_timeout": "400ms",
		})
		t.Run("buffering "+buffering, func(t *testing.T) {
			t.Run("head", func(t *testing.T) {
				d, begin := in.connect(), time.Now()
				d.say("GET / HTTP/1.1\r\nHost: a.exa")
				d.ends()
				took(t, "it", begin, 300*time.Millisecond)
			})
			t.Run("body", func(t *testing.T) {
				for _, where := range []string{"a length", "chunks", "between chunks", "the size of a chunk"} {
					d, begin := in.connect(), time.Now()
					d.say("%s", pauses[where])
					got := d.head(http.MethodPost)
					// The server of the site is net/http's: it ends the request before it says why. Where nothing reads at that moment, the
					// client counts as gone.
					if got.StatusCode != http.StatusRequestTimeout && (buffering == "on" || got.StatusCode != clientGone) {
						t.Errorf("%s: %s", where, got.Status)
					}
					took(t, "it", begin, 300*time.Millisecond)
				}
			})
			t.Run("answer", func(t *testing.T) {
				d := in.connect()
				d.say("%s", get("/large"))
				if err := await(t, "the end at the endpoint", ended); err == nil {
					t.Error("it has sent all")
				}
			})
		})
		in.stop()
	}
}

// TestManyResets opens and resets streams as fast as a connection takes it. The server may end the connection; it goes on
// for others, and keeps nothing of them.
func TestManyResets(t *testing.T) {
	in := inFront(t, hangs)
	before := runtime.NumGoroutine()
	conn, err := tls.Dial("tcp", in.https, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(deadline))
	most := make(chan int, 1)
	stop := make(chan struct{})
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(5 * time.Millisecond):
				n = max(n, runtime.NumGoroutine())
			}
		}
	}()
	sent := reset(conn, 10_000)
	close(stop)
	t.Logf("%d streams were sent, and there were %d goroutines", sent, fixture.Receive(t, "the number of goroutines", most))
	if n := runtime.NumGoroutine() - before; n > 3000 {
		t.Errorf("%d goroutines are left right away", n)
	}
	in.expect("nobody.example", "/", http.StatusNotFound, "")
	_ = conn.Close()
	in.eventually("the end of the requests", func() error {
		if n := runtime.NumGoroutine(); n > before+50 {
			return fmt.Errorf("%d goroutines, %d before", n, before)
		}
		return nil
	})
}

// reset returns how many streams the server has taken.
func reset(conn net.Conn, streams int) int {
	var preface bytes.Buffer
	preface.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&preface, conn)
	_ = framer.WriteSettings()
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	for i := range streams {
		block.Reset()
		for _, f := range [...]hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":authority", Value: "a.example"}, {Name: ":path", Value: "/"},
		} {
			_ = encoder.WriteField(f)
		}
		id := uint32(2*i + 1)
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		_ = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		if _, err := conn.Write(preface.Bytes()); err != nil {
			return i
		}
		preface.Reset()
	}
	return streams
}

// TestBufferedAnswer: with proxy-buffering the endpoint gets rid of a large answer although the client reads nothing, and the
// client gets all of it when it does.
func TestBufferedAnswer(t *testing.T) {
	sent := pattern(48 << 20)
	done := make(chan struct{}, 10)
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/known") {
			w.Header().Set("Content-Length", fmt.Sprint(len(sent)))
		}
		_, _ = w.Write(sent)
		done <- struct{}{}
	}, "proxy-buffering: on")
	in.byHTTP1(t, func(t *testing.T, in *ingress) {
		for _, path := range []string{"/", "/known"} {
			d := in.connect()
			d.say("%s", get(path))
			await(t, "the end at the endpoint", done)
			body, err := io.ReadAll(d.head(http.MethodGet).Body)
			if err != nil || hash(body) != hash(sent) {
				t.Errorf("%d bytes, %v", len(body), err)
			}
		}
	})
}
