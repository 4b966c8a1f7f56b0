package k8singress_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
)

// limitFiles sets how many file descriptors this process may have; an empty text sets nothing.
func limitFiles(most string) {
	n, err := strconv.ParseUint(most, 10, 64)
	if err != nil {
		return
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}

// TestTenant06: a process that may have 1,500 file descriptors gets 5,000 connections to a TCP port, whose clients close none, and 5,000
// clients of a UDP port. HTTP requests, each on a connection of its own, go on meanwhile.
func TestTenant06(t *testing.T) {
	t.Setenv(filesOfCaddy, "1500")
	c := launch(t, newOrigin(t), "tcp_services default/tcp-services\nudp_services default/udp-services\nstream_bind 127.0.0.1")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func() {
		t.Helper()
		if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
			t.Fatalf("a request gets %d, %v", status, err)
		}
	}
	const hostile, each = 5000, 50
	for i := range hostile {
		conn, err := net.DialTimeout("tcp", c.stream, patience)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%each == 0 {
			ask()
		}
	}
	flood(t, c.stream, hostile)
	ask()
}

// TestClientConnections: a process that may have 400 file descriptors has room for 100 clients. 300 that are silent after a request, by
// HTTP/1.1, or after none, are closed where others come: their requests go on.
func TestClientConnections(t *testing.T) {
	t.Setenv(filesOfCaddy, "400")
	c := launch(t, newOrigin(t), "")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const hostile, each = 300, 20
	for _, first := range []string{"GET / HTTP/1.1\r\nHost: h\r\n\r\n", ""} {
		for i := range hostile {
			conn, err := net.DialTimeout("tcp", c.http, patience)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, first); err != nil {
				t.Fatal(err)
			}
			if first != "" {
				// It waits from here on. Without an answer it has been closed.
				_, _ = conn.Read(make([]byte, 1<<10))
			}
			if i%each == 0 {
				c.becomes("answered", func() error {
					if status, _, err := c.get(client, "http://"+c.http); status != http.StatusOK {
						return fmt.Errorf("a request gets %d, %w", status, err)
					}
					return nil
				})
			}
		}
	}
}

// flood sends a datagram from each of many sockets.
func flood(t *testing.T, to string, count int) {
	t.Helper()
	for range count {
		conn, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "x") // Nobody may listen there for a moment.
		conn.Close()
	}
}
