package main

import (
	"context"
	"fmt"
	"strings"
)

const (
	// mediumAnswer and longAnswer are the sizes of responses. shortUpload and longUpload are the sizes of request
	// bodies.
	mediumAnswer, longAnswer = 16 << 10, 1 << 20
	shortUpload, longUpload  = 4 << 10, 1 << 20
	// manyConnections is larger than the number of connections in the other works.
	manyConnections = 256
)

// browserHeader contains the header lines of a browser except Host: ten fields with about 800 bytes.
var browserHeader = strings.Join([]string{
	"Connection: keep-alive",
	`sec-ch-ua: "Chromium";v="130", "Google Chrome";v="130", "Not?A_Brand";v="99"`,
	"Upgrade-Insecure-Requests: 1",
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36",
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8",
	"Sec-Fetch-Site: same-origin",
	"Referer: https://app-00001.bench.test/catalogue/shoes?page=2&sort=price",
	"Accept-Encoding: gzip, deflate, br, zstd",
	"Accept-Language: en-GB,en;q=0.9,de;q=0.8",
	"Cookie: session=" + strings.Repeat("0123456789abcdef", 10) + "; theme=dark; consent=" + strings.Repeat("y", 60),
}, "\r\n")

// work is one kind of request.
type work struct {
	name string
	// minimum is the required ratio to nginx's requests per second.
	minimum float64
	// tool is an external program that sends the requests. It is empty if bench sends them.
	tool string
	send func(ctx context.Context, o options, c *contestant) (figures, error)
}

// works lists all kinds of requests for which proxies are compared.
var works = []work{
	{"short GET", 0.80, "", sends(func(*load) {})},
	{"short GET, 10 fields of a browser", 0.80, "", sends(func(l *load) { l.header = browserHeader })},
	{fmt.Sprintf("short GET, %d connections", manyConnections), 0.75, "",
		sends(func(l *load) { l.connections = manyConnections })},
	{"HTTPS, HTTP/1.1", 0.95, "", sends((*load).encrypt)},
	{"POST of 4 KiB", 0.80, "", sends(func(l *load) { l.upload = longBody(shortUpload) })},
	{"POST of 1 MiB", 0.90, "", sends(func(l *load) { l.upload = longBody(longUpload) })},
	{"answer of 16 KiB", 1.1, "", sends(func(l *load) { l.ask(mediumAnswer) })},
	{"answer of 1 MiB", 2.0, "", sends(func(l *load) { l.ask(longAnswer) })},
	{fmt.Sprintf("HTTP/2, %d connections with %d streams", h2Connections, h2Streams), 0.60, "h2load", sendTwo},
}

// ask requests a response with the given number of bytes.
func (l *load) ask(size int) { l.path, l.body = sizePath(size), longBody(size) }

// encrypt makes the load use HTTPS.
func (l *load) encrypt() { l.secure, l.hosts = true, []string{hostName(secureHost)} }

// sends returns a function that sends a load which differs from short GETs by change. It calls change once for each
// measurement.
func sends(change func(*load)) func(context.Context, options, *contestant) (figures, error) {
	return func(ctx context.Context, o options, c *contestant) (figures, error) {
		l := c.load(o, plainHost)
		change(&l)
		if l.secure {
			l.address = c.https
		}
		return l.run(ctx)
	}
}
