package featuretests

import (
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestEndOfHTTP3 checks that a request in progress gets its response when its server stops, that later requests get
// none, and that the port is free afterwards.
func TestEndOfHTTP3(t *testing.T) {
	entered, wait := make(chan struct{}, 1), make(chan struct{})
	in := inFront(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			entered <- struct{}{}
			<-wait
		}
		_, _ = io.WriteString(w, "answered")
	})
	client, answers := in.clientOf(t, secure3, anybody()), make(chan string, 1)
	go func() {
		response, err := client.Get("https://a.example/slow")
		if err != nil {
			answers <- err.Error()
			return
		}
		answers <- read(t, response).body
	}()
	fixture.Receive(t, "the request", entered)
	in.stop()
	in.eventually("no new connections", func() error {
		other := in.clientOf(t, secure3, anybody())
		if response, err := other.Get("https://a.example/"); err == nil {
			return errors.Join(errors.New("there is an answer"), response.Body.Close())
		}
		return nil
	})
	close(wait)
	if got := fixture.Receive(t, "the answer", answers); got != "answered" {
		t.Errorf("the request under way gets %q", got)
	}
	in.eventually("a free port", func() error {
		conn, err := net.ListenPacket("udp", in.https)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
