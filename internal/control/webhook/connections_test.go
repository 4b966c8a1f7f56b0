package webhook_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestWithoutTLS checks that requests without TLS get no answer.
func TestWithoutTLS(t *testing.T) {
	r := start(t)
	response, err := http.Post("http://"+r.address+path, "application/json", strings.NewReader(review("{}")))
	if err == nil {
		defer response.Body.Close()
	}
	if err == nil && response.StatusCode != http.StatusBadRequest {
		t.Errorf("the status is %d", response.StatusCode)
	}
}

// TestIdleConnections checks that idle connections of other programs do not prevent a review.
func TestIdleConnections(t *testing.T) {
	r := start(t)
	config := r.Transport.(*http.Transport).TLSClientConfig
	for range 128 {
		c, err := tls.Dial("tcp", r.address, config)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: webhook.example\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || response.StatusCode != http.StatusNotFound {
			t.Fatal(response, err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
	}
	fixture.Eventually(t, "a review is answered", func() error {
		response, err := r.Post("https://"+r.address+path, "application/json", strings.NewReader(review("{}")))
		if err != nil {
			return err
		}
		return response.Body.Close()
	})
}

// dial opens a connection to the webhook, and sends the header of a request with a body of the given size.
func (r *running) dial(path string, size int) (*tls.Conn, error) {
	plain, err := net.Dial("tcp", r.address)
	if err != nil {
		return nil, err
	}
	c := tls.Client(plain, r.Transport.(*http.Transport).TLSClientConfig)
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: webhook.example\r\nContent-Length: %d\r\n\r\n", path, size)
	return c, err
}

// TestRefusedConnections opens as many connections as there may be, at once. It checks that their handshakes are spread
// over time, and that a review is answered while the connections wait until their clients have read the error.
func TestRefusedConnections(t *testing.T) {
	r := start(t)
	const limit, perSecond, atOnce = 128, 30, 8
	begin := time.Now()
	var opening sync.WaitGroup
	for range limit {
		opening.Go(func() {
			c, err := r.dial(path, 10<<20)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			response, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge ||
				!strings.Contains(string(text), "9 MiB") {
				t.Errorf("%v: %s, %v", response, text, err)
			}
		})
	}
	opening.Wait()
	if took := time.Since(begin); took < (limit-atOnce)*time.Second/perSecond {
		t.Errorf("%d handshakes took only %v", limit, took)
	}
	r.answer(review("{}"))
}
