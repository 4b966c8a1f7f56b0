package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// load is a number of keep-alive connections that send one request after the other. It implements HTTP/1.1 itself,
// because a client library would use as much processor time as the measured proxy, on the same processors.
type load struct {
	// proxy is the process whose processor time is measured. It may be nil.
	proxy   *process
	address string
	// secure reports whether to use HTTPS.
	secure bool
	// hosts are used by the connections in turn.
	hosts []string
	// body is the expected response body. It contains at most one line.
	body string
	// path is the path of all requests. The empty path is "/".
	path string
	// header contains more header lines for each request, separated by line ends. It may be empty.
	header string
	// from sets another client address in each request, like a proxy in front. Nil leaves the request unchanged.
	from *addresses
	// compressed reports whether the response must be compressed with gzip.
	compressed bool
	// upload is the request body. If it is not empty, requests are POSTs.
	upload      string
	connections int
	// perSecond is the total number of requests per second; 0 means as many as possible.
	perSecond int
	warmUp    time.Duration
	duration  time.Duration
	// tolerant reports whether a failure is counted and the connection is opened again. Otherwise the first failure
	// ends the load.
	tolerant bool
}

const (
	// lateness is the time after the end of the load in which its last responses may arrive.
	lateness = 10 * time.Second
	// again is the delay before a connection is opened again after a failure.
	again = 10 * time.Millisecond
)

// run sends the load. Any unexpected response is an error, so that a proxy that fails quickly does not look fast.
func (l load) run(ctx context.Context) (figures, error) {
	t := l.count(ctx)
	return t.figures, errors.Join(ctx.Err(), t.first)
}

// count sends the load. Its result includes the failures.
func (l load) count(ctx context.Context) *tally {
	return repetition{l.proxy, l.connections, l.warmUp, l.duration, l.tolerant}.together(ctx, l.repeat)
}

// repeat keeps one connection open until ctx ends.
func (l load) repeat(ctx context.Context, begin time.Time, number int, t *tally) {
	p := l.pace(number)
	for ctx.Err() == nil {
		err := l.connection(ctx, begin, p, t)
		if err == nil {
			return
		}
		t.fail(fmt.Errorf("%s: %w", p.host, err))
		if !l.tolerant {
			return
		}
		wait(ctx, time.Now().Add(again))
	}
}

// connection sends requests on one connection until ctx ends. It records the latencies of requests that were due after
// begin.
func (l load) connection(ctx context.Context, begin time.Time, p *pace, t *tally) error {
	deadline, _ := ctx.Deadline()
	connection, err := l.dial(ctx, p.host)
	if err != nil {
		// The dialer checks the deadline itself, and may fail before ctx reports its end.
		if ctx.Err() != nil || !time.Now().Before(deadline) {
			return nil
		}
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(deadline.Add(lateness)); err != nil {
		return err
	}
	request := l.request(p.host)
	reader := bufio.NewReaderSize(connection, min(max(len(l.body), 4<<10), 64<<10))
	for due := p.next(ctx); ctx.Err() == nil; due = p.next(ctx) {
		l.from.next(request)
		if _, err := connection.Write(request); err != nil {
			return err
		}
		if err := l.read(reader); err != nil {
			return err
		}
		if due.After(begin) {
			t.latencies = append(t.latencies, time.Since(due))
		}
	}
	return nil
}

// request returns the request that each connection sends repeatedly.
func (l load) request(host string) []byte {
	method, more := "GET", l.header
	if more != "" {
		more += "\r\n"
	}
	if l.upload != "" {
		method = "POST"
		more += "Content-Length: " + strconv.Itoa(len(l.upload)) + "\r\n"
	}
	path := cmp.Or(l.path, "/")
	return []byte(method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + more + "\r\n" + l.upload)
}

func (l load) dial(ctx context.Context, host string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: lateness}
	if !l.secure {
		return plain.DialContext(ctx, "tcp", l.address)
	}
	dialer := tls.Dialer{NetDialer: plain,
		Config: &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}}
	return dialer.DialContext(ctx, "tcp", l.address)
}

// pace determines when one connection sends its requests, and to which host.
type pace struct {
	host     string
	interval time.Duration
	due      time.Time
}

// pace distributes the first requests of the connections evenly over the interval between two requests of one
// connection.
func (l load) pace(number int) *pace {
	p := &pace{host: l.hosts[number%len(l.hosts)]}
	if l.perSecond > 0 {
		p.interval = time.Second * time.Duration(l.connections) / time.Duration(l.perSecond)
		p.due = time.Now().Add(p.interval * time.Duration(number) / time.Duration(l.connections))
	}
	return p
}

// next waits until a request is due, and returns that time. Latencies are measured from the due time even if the
// previous response was late, because real users do not wait for each other.
func (p *pace) next(ctx context.Context) time.Time {
	if p.interval == 0 {
		return time.Now()
	}
	due := p.due
	p.due = due.Add(p.interval)
	wait(ctx, due)
	return due
}

func wait(ctx context.Context, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// read reads one response.
func (l load) read(reader *bufio.Reader) error {
	if l.compressed {
		return readCompressed(reader, l.body)
	}
	return readAnswer(reader, l.body)
}

// readAnswer reads one response and compares it with the expected body. It allocates nothing, because the proxy runs on
// the same machine.
func readAnswer(reader *bufio.Reader, body string) error {
	line, err := reader.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("the response is %q, not the backend's", bytes.TrimSpace(line))
	}
	length, _, err := readFields(reader)
	switch {
	case err != nil:
		return err
	case length == chunked:
		return readChunks(reader, body)
	case length != len(body):
		return fmt.Errorf("the response has %d bytes, not the backend's", length)
	}
	return readBody(reader, body)
}

// readChunks reads a body that is sent in chunks, and compares it with the expected body.
func readChunks(reader *bufio.Reader, body string) error {
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		n := int(size)
		if n > len(body) || n == 0 && len(body) > 0 {
			return fmt.Errorf("the response has a chunk of %d bytes, but %d bytes are missing", n, len(body))
		}
		if err := readBody(reader, body[:n]); err != nil {
			return err
		}
		if _, err := reader.Discard(len("\r\n")); n == 0 || err != nil {
			return err
		}
		body = body[n:]
	}
}

// readBody reads the body piece by piece and compares it with the expected body.
func readBody(reader *bufio.Reader, body string) error {
	for len(body) > 0 {
		if _, err := reader.Peek(1); err != nil {
			return err
		}
		got, _ := reader.Peek(min(len(body), reader.Buffered()))
		if string(got) != body[:len(got)] {
			return fmt.Errorf("the response is %.100q, not the backend's", got)
		}
		body = body[len(got):]
		if _, err := reader.Discard(len(got)); err != nil {
			return err
		}
	}
	return nil
}

// readCompressed reads one compressed response. It compares the checksum and the length at the end of the gzip data
// with the expected body.
func readCompressed(reader *bufio.Reader, body string) error {
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Encoding") != "gzip" {
		return fmt.Errorf("the response is %q in %q, not the backend's in gzip", response.Status,
			response.Header.Get("Content-Encoding"))
	}
	const end = 8
	sums := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(body)))
	sums = binary.LittleEndian.AppendUint32(sums, uint32(len(body)))
	if len(got) < end || !bytes.Equal(got[len(got)-end:], sums) {
		return fmt.Errorf("the compressed response ends with %x, not as the backend's", got[max(0, len(got)-end):])
	}
	return nil
}
