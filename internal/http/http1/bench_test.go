package http1_test

import (
	"testing"

	"github.com/k8singress/k8singress/internal/http/http1"
	"github.com/k8singress/k8singress/internal/http/message"
)

var short = crlf("GET / HTTP/1.1", "Host: host0042.example.org")

var browser = crlf("GET /shop/items?page=2 HTTP/1.1", "Host: host0042.example.org",
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
	"Accept-Language: en-US,en;q=0.5",
	"Accept-Encoding: gzip, deflate, br, zstd", "Referer: https://host0042.example.org/shop/",
	"Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; _ga=GA1.2.1234567890.1234567890; consent=yes",
	"Upgrade-Insecure-Requests: 1", "Sec-Fetch-Dest: document", "Sec-Fetch-Mode: navigate", "Cache-Control: max-age=0")

func BenchmarkRequest(b *testing.B) {
	for name, text := range map[string]string{"wrk": short, "browser": browser} {
		b.Run(name, func(b *testing.B) {
			buffer := []byte(text)
			var h http1.RequestHead
			var r message.Request
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var s http1.Scanner
				head, _, err := s.Find(buffer)
				if err != nil || h.Parse(head, &r) != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkResponse(b *testing.B) {
	buffer := []byte(crlf("HTTP/1.1 200 OK", "Server: nginx", "Date: Sun, 22 Nov 2026 18:00:00 GMT",
		"Content-Type: text/html; charset=utf-8", "Content-Length: 612",
		"Last-Modified: Tue, 04 Mar 2025 10:00:00 GMT",
		"Connection: keep-alive", "ETag: \"67c6d0a0-264\"", "Accept-Ranges: bytes", "Cache-Control: no-cache"))
	var h http1.ResponseHead
	var a message.Response
	b.ReportAllocs()
	for b.Loop() {
		s := http1.Scanner{Response: true}
		head, _, err := s.Find(buffer)
		if err != nil || h.Parse(head, "GET", &a) != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	var h http1.RequestHead
	var r message.Request
	if err := h.Parse([]byte(browser), &r); err != nil {
		b.Fatal(err)
	}
	var buf []byte
	line := http1.RequestLine{Method: r.Method, Target: r.OutTarget(), Host: r.Host}
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if buf, err = http1.AppendRequestHead(buf[:0], &line, r.Fields); err != nil {
			b.Fatal(err)
		}
	}
}
