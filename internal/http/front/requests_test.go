package front_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"golang.org/x/net/http2"

	"github.com/k8singress/k8singress/internal/http/front"
	"github.com/k8singress/k8singress/internal/http/message"
	"github.com/k8singress/k8singress/internal/tests/fixture"
)

// TestFewerStreamsAsTheBudgetFills checks that new HTTP/2 connections, with and without TLS, and HTTP/3 connections
// allow fewer concurrent requests as the memory budget of requests fills up, and more again when it empties.
func TestFewerStreamsAsTheBudgetFills(t *testing.T) {
	const limit = 8000
	requests := front.LimitRequests(t, limit)
	plain, secure := fixture.Address(t), fixture.Address(t)
	one, two := fronted(plain, "one"), frontedWithTLS(secure)
	one.more["protocols"] = []string{"h1", "h2c"}
	start(t, map[string]server{"one": one})
	if err := load(map[string]server{"one": one, "two": two}, keys(t)); err != nil {
		t.Fatal(err)
	}
	const own2, own3 = 250, 100
	for _, c := range []struct{ used, two, three int64 }{
		{0, own2, own3}, {limit/2 - 1, own2, own3}, {limit / 2, 128, own3}, {limit / 4 * 3, 32, 32},
		{limit / 8 * 7, 8, 8},
		{limit, 8, 8}, {limit / 2, 128, own3}, {0, own2, own3},
	} {
		if !requests.Take(c.used) {
			t.Fatal("the budget has no room")
		}
		for name, got := range map[string]int64{
			"HTTP/2 without TLS": streamsOf(t, dial(t, "tcp", plain).Conn),
			"HTTP/2 with TLS": streamsOf(t, tls.Client(dial(t, "tcp", secure).Conn, &tls.Config{
				ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{"h2"},
			})),
		} {
			if got != c.two {
				t.Errorf("%d of %d bytes: %s has %d streams, want %d", c.used, limit, name, got, c.two)
			}
		}
		if got := streamsOfQUIC(t, secure); got != c.three {
			t.Errorf("%d of %d bytes: HTTP/3 has %d streams, want %d", c.used, limit, got, c.three)
		}
		requests.Give(c.used)
	}
}

// streamsOf returns the maximum number of concurrent streams that an HTTP/2 server announces.
func streamsOf(t *testing.T, conn net.Conn) int64 {
	t.Helper()
	defer conn.Close()
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	frame, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := frame.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("the first frame is %v", frame)
	}
	value, ok := settings.Value(http2.SettingMaxConcurrentStreams)
	if !ok {
		t.Fatal("the server sets no number of requests")
	}
	return int64(value)
}

// streamsOfQUIC returns the maximum number of concurrent requests on an HTTP/3 connection.
func streamsOfQUIC(t *testing.T, address string) (streams int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fixture.Patience)
	defer cancel()
	config := &tls.Config{ServerName: "h", InsecureSkipVerify: true, NextProtos: []string{"h3"}}
	conn, err := quic.DialAddr(ctx, address, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseWithError(0, "") }()
	for {
		if _, err := conn.OpenStream(); err != nil {
			return streams
		}
		streams++
	}
}

// TestBudgetOfRequestsToCaddy checks that requests handled by a server of Caddy also get a 503 response if
// there is no room, and that each one is reported.
func TestBudgetOfRequestsToCaddy(t *testing.T) {
	requests := front.LimitRequests(t, 64<<10)
	refused := make(chan string, 1)
	front.Process().RefuseRequest = func(_ *front.Binding, w message.Writer, r *message.Request, began time.Time) {
		started := w.Started()
		_ = w.Head(&message.Response{Status: http.StatusServiceUnavailable,
			Fields: message.Fields{message.NewField("X-Refused", "1")}})
		refused <- fmt.Sprint(r.Method, " ", r.Path, " ", started, " ", time.Since(began) < fixture.Patience)
	}
	t.Cleanup(func() { front.Process().RefuseRequest = nil })
	plain := fixture.Address(t)
	one := fronted(plain, "one")
	one.more["protocols"] = []string{"h2c"}
	start(t, map[string]server{"one": one})
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(transport.CloseIdleConnections)
	ask := func(want int) http.Header {
		t.Helper()
		client := &http.Client{Transport: transport}
		response, err := client.Post("http://"+plain+"/path", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("a request gets %s, want %d", response.Status, want)
		}
		return response.Header
	}
	ask(http.StatusOK)
	fixture.Eventually(t, "what an answered request took", func() error {
		if !requests.Take(64 << 10) {
			return fmt.Errorf("%d bytes are used", requests.Used())
		}
		return nil
	})
	if header := ask(http.StatusServiceUnavailable); header.Get("X-Refused") != "1" {
		t.Errorf("the answer has the header %v", header)
	}
	if got := fixture.Receive(t, "the report", refused); got != "POST /path false true" {
		t.Errorf("the report is %q", got)
	}
	front.Process().RefuseRequest = nil
	ask(http.StatusServiceUnavailable)
	requests.Give(64 << 10)
	ask(http.StatusOK)
}
