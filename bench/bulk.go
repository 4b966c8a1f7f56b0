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

// bulkStreams is how many connections send at once.
const bulkStreams = 2

// bulk is a number of connections that send as much as they can.
type bulk struct {
	address  string
	streams  int
	warmUp   time.Duration
	duration time.Duration
}

// moved is what came of it.
type moved struct {
	// perSecond is bytes that the backend has read; perProcessor is the same in a second of the proxy's processor time.
	// It is zero without a proxy.
	perSecond, perProcessor float64
}

// run sends through a proxy, which is nil where there is none.
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

// watch counts from the end of the warm-up until ctx ends.
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
			fmt.Errorf("the proxy moved %.0f bytes in %v of processor time: this machine has no time for it",
				bytes, after-spent)
	}
	return moved{bytes / took.Seconds(), bytes / (after - spent).Seconds()}, nil
}

// send writes until ctx ends, and waits until the backend has closed the connection, too: what is in buffers must not
// count for the next one that is measured.
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

// oneByte makes a connection on which a byte goes each way. The backend closes it first: otherwise this machine would
// run out of ports.
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
		err = fmt.Errorf("the answer is %q, not the backend's", answer)
	}
	return err
}
