package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// bulkStreams is the number of connections that send at the same time.
const bulkStreams = 2

// bulk is a load of connections that each send as much data as possible.
type bulk struct {
	address  string
	streams  int
	warmUp   time.Duration
	duration time.Duration
}

// moved is the result of a bulk load.
type moved struct {
	// perSecond is the number of bytes that the backend has read per second. perProcessor is the number per second of
	// the proxy's processor time; it is 0 without a proxy.
	perSecond, perProcessor float64
}

// run sends data through a proxy. proxy is nil if there is none.
func (b bulk) run(ctx context.Context, backend *streamBackend, proxy *process) (moved, error) {
	limited, cancel := context.WithTimeout(ctx, b.warmUp+b.duration)
	defer cancel()
	errs := make([]error, b.streams)
	var group sync.WaitGroup
	for i := range errs {
		group.Go(func() {
			if errs[i] = b.send(limited); errs[i] != nil {
				cancel()
			}
		})
	}
	result, err := b.watch(limited, backend, proxy)
	group.Wait()
	return result, errors.Join(append(errs, err, ctx.Err())...)
}

// watch measures from the end of the warm-up until ctx ends.
func (b bulk) watch(ctx context.Context, backend *streamBackend, proxy *process) (moved, error) {
	wait(ctx, time.Now().Add(b.warmUp))
	begin, before := time.Now(), backend.received.Load()
	spent, errBefore := proxy.processorTime()
	<-ctx.Done()
	took, bytes := time.Since(begin), float64(backend.received.Load()-before)
	after, errAfter := proxy.processorTime()
	if err := errors.Join(errBefore, errAfter); err != nil || proxy == nil {
		return moved{perSecond: bytes / took.Seconds()}, err
	}
	if after <= spent || bytes == 0 {
		return moved{},
			fmt.Errorf("the proxy moved %.0f bytes in %v of processor time: this machine is too busy",
				bytes, after-spent)
	}
	return moved{bytes / took.Seconds(), bytes / (after - spent).Seconds()}, nil
}

// send writes until ctx ends. Then it waits until the backend has closed the connection, so that buffered data is not
// counted in the next measurement.
func (b bulk) send(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", b.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline.Add(lateness)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{wantSink}); err != nil {
		return err
	}
	for data := make([]byte, segment); ctx.Err() == nil; {
		if _, err := conn.Write(data); err != nil {
			return fmt.Errorf("sending: %w", err)
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// oneByte opens a connection and sends one byte in each direction. The backend closes the connection first. Otherwise
// this machine would run out of ports.
func oneByte(address string) error {
	conn, err := net.DialTimeout("tcp", address, lateness)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(lateness)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte{wantByte}); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && string(answer) != string(wantByte) {
		err = fmt.Errorf("the response is %q, not the backend's", answer)
	}
	return err
}
