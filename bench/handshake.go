package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// handshakes is a number of clients that make one TLS connection after the other: TLS 1.3, and no session is resumed.
type handshakes struct {
	address string
	// hosts is how many names they ask for, one after the other.
	hosts    int
	clients  int
	warmUp   time.Duration
	duration time.Duration
	// tolerant says that a failure is counted. Otherwise it ends the load.
	tolerant bool
}

// count makes the handshakes, and counts those that fail, or show the certificate of another host, with the rest.
func (h handshakes) count(ctx context.Context) *tally {
	begin := time.Now().Add(h.warmUp)
	ctx, cancel := context.WithDeadline(ctx, begin.Add(h.duration))
	defer cancel()
	tallies := make([]*tally, h.clients)
	var group sync.WaitGroup
	for i := range h.clients {
		tallies[i] = &tally{}
		group.Go(func() {
			if h.repeat(ctx, begin, i, tallies[i]); tallies[i].failed > 0 && !h.tolerant {
				cancel()
			}
		})
	}
	group.Wait()
	return join(tallies, h.duration)
}

func (h handshakes) repeat(ctx context.Context, begin time.Time, number int, t *tally) {
	for host := number; ctx.Err() == nil; host += h.clients {
		from := time.Now()
		_, err := handshake(h.address, hostName(host%h.hosts+1))
		switch {
		case err != nil:
			t.fail(err)
			if !h.tolerant {
				return
			}
		case from.After(begin):
			t.latencies = append(t.latencies, time.Since(from))
		}
	}
}

// handshakeTime is how long one may take. Only a failure takes so long.
const handshakeTime = 10 * time.Second

// handshake makes a connection, and returns the serial number of the certificate that it is shown. The server closes the
// connection first: otherwise this machine would run out of ports.
func handshake(address, host string) (serial int64, err error) {
	plain, err := net.DialTimeout("tcp", address, handshakeTime)
	if err != nil {
		return 0, err
	}
	defer plain.Close()
	if err := plain.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return 0, err
	}
	conn := tls.Client(plain, &tls.Config{
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{tls.X25519},
	})
	if err := conn.Handshake(); err != nil {
		return 0, fmt.Errorf("%s: %w", host, err)
	}
	leaf := conn.ConnectionState().PeerCertificates[0]
	if len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != host {
		return 0, fmt.Errorf("%s is shown the certificate of %v", host, leaf.Subject)
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, fmt.Errorf("%s: %w", host, err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return 0, fmt.Errorf("%s: %w", host, err)
	}
	return leaf.SerialNumber.Int64(), nil
}
