package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// hostile is a group of clients that attack in the same way. Their starts are spread over ramp; they stay until ctx
// ends.
type hostile struct {
	name    string
	clients int
	ramp    time.Duration
	do      func(ctx context.Context, number int, results *outcomes)
	results outcomes
}

// attackWith starts all clients. The function that it returns ends them, and waits for them.
func attackWith(ctx context.Context, all []*hostile) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, each := range all {
		begin := time.Now()
		for number := range each.clients {
			group.Go(func() {
				wait(ctx, begin.Add(each.ramp*time.Duration(number)/time.Duration(each.clients)))
				if ctx.Err() == nil {
					each.do(ctx, number, &each.results)
				}
			})
		}
	}
	return func() {
		cancel()
		group.Wait()
	}
}

// outcomes counts how requests or connections ended, by a short description.
type outcomes struct {
	mutex  sync.Mutex
	counts map[string]int
}

// Outcomes of clients that got no response.
const (
	heldOpen   = "open at the end"
	closedOnIt = "closed by the server"
	notDialed  = "not connected"
)

func (o *outcomes) add(what string, count int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.counts == nil {
		o.counts = map[string]int{}
	}
	if o.counts[what] += count; o.counts[what] == 0 {
		delete(o.counts, what)
	}
}

// String lists the outcomes, the most frequent first.
func (o *outcomes) String() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	names := make([]string, 0, len(o.counts))
	for name := range o.counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if o.counts[a] != o.counts[b] {
			return o.counts[b] - o.counts[a]
		}
		return strings.Compare(a, b)
	})
	for i, name := range names {
		names[i] = thousands(float64(o.counts[name])) + " " + name
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}

// endOf returns the outcome of a connection that was open until its context ended, or until it failed.
func endOf(ctx context.Context) string {
	if ctx.Err() != nil {
		return heldOpen
	}
	return closedOnIt
}

// connected runs do on a hostile connection, which ends with ctx.
func connected(ctx context.Context, address string, number int, results *outcomes, do func(net.Conn)) {
	conn, err := dialHostile(ctx, address, number)
	if err != nil {
		if ctx.Err() == nil {
			results.add(notDialed, 1)
		}
		return
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	do(conn)
}

// silentAgain is the time until a silent client connects again after the server has closed its connection.
const silentAgain = 5 * time.Second

// silent returns clients that connect, send nothing, and connect again after the server closes the connection.
func silent(name, address string, clients int, ramp time.Duration) *hostile {
	return &hostile{name: name, clients: clients, ramp: ramp,
		do: func(ctx context.Context, number int, results *outcomes) {
			for ctx.Err() == nil {
				connected(ctx, address, number, results, func(conn net.Conn) {
					// Only the end of the connection matters, not the response.
					_, _ = io.Copy(io.Discard, conn)
					results.add(endOf(ctx), 1)
				})
				wait(ctx, time.Now().Add(silentAgain))
			}
		}}
}

// uploads returns clients that send a body without its last byte.
func (t *target) uploads(clients int, ramp time.Duration) *hostile {
	block := []byte(longBody(64 << 10))
	name := fmt.Sprintf("%d uploads of %d MiB without the last byte", clients, uploadSize>>20)
	head := fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", hostName(plainHost), uploadSize)
	return &hostile{name: name, clients: clients, ramp: ramp,
		do: func(ctx context.Context, number int, results *outcomes) {
			connected(ctx, t.http, number, results, func(conn net.Conn) {
				go upload(conn, head, block)
				results.add(answered(ctx, conn), 1)
			})
		}}
}

// upload sends the head and the body. It ignores errors, since the reader of the connection counts how it ends.
func upload(conn net.Conn, head string, block []byte) {
	if _, err := io.WriteString(conn, head); err != nil {
		return
	}
	for left := uploadSize - 1; left > 0; {
		n, err := conn.Write(block[:min(left, len(block))])
		if err != nil {
			return
		}
		left -= n
	}
}

// answered waits for the response on a connection, and returns the outcome.
func answered(ctx context.Context, conn net.Conn) string {
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return endOf(ctx)
	}
	defer response.Body.Close()
	return fmt.Sprintf("answered %d", response.StatusCode)
}

// Slow readers read one byte every readerPause, and have small receive buffers.
const (
	readerPause  = time.Second
	readerBuffer = 4 << 10
)

// readers returns clients that accept brotli and read the response slowly.
func (t *target) readers(clients int, ramp time.Duration) *hostile {
	name := fmt.Sprintf("%d slow readers of brotli", clients)
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: br\r\n\r\n", noisePath, hostName(plainHost))
	return &hostile{name: name, clients: clients, ramp: ramp,
		do: func(ctx context.Context, number int, results *outcomes) {
			connected(ctx, t.http, number, results, func(conn net.Conn) {
				// With a larger buffer, the kernel would hold more of the response.
				_ = conn.(*net.TCPConn).SetReadBuffer(readerBuffer)
				if _, err := io.WriteString(conn, request); err != nil {
					results.add(endOf(ctx), 1)
					return
				}
				results.add(readSlowly(ctx, conn), 1)
			})
		}}
}

// readSlowly reads the head, and then the body byte by byte. It returns the outcome.
func readSlowly(ctx context.Context, conn net.Conn) string {
	reader := bufio.NewReaderSize(conn, 1<<10)
	response, err := http.ReadResponse(reader, nil)
	if err != nil {
		return endOf(ctx)
	}
	defer response.Body.Close()
	coding := "not compressed"
	if named := response.Header.Get("Content-Encoding"); named != "" {
		coding = "in " + named
	}
	for one := make([]byte, 1); ctx.Err() == nil; {
		if _, err := response.Body.Read(one); err != nil {
			break
		}
		wait(ctx, time.Now().Add(readerPause))
	}
	return fmt.Sprintf("answered %d %s, %s", response.StatusCode, coding, endOf(ctx))
}
