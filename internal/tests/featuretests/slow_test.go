package featuretests

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// clientGone is nginx's status for a client that has disconnected.
const clientGone = 499

// TestSlowClients checks that a client that pauses for too long in a head, a body or a response is disconnected.
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
					// The site's server is net/http's, which ends the request before it sets the reason. If nothing is
					// being read then, the status is clientGone.
					if got.StatusCode != http.StatusRequestTimeout &&
						(buffering == "on" || got.StatusCode != clientGone) {
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

// TestBufferedResponse checks that with proxy-buffering the endpoint can send a large response although the client
// reads nothing, and that the client gets all of it later.
func TestBufferedResponse(t *testing.T) {
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
