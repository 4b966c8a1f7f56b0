package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// handshakes is a number of clients that make one TLS connection after the other: TLS 1.3, and no session is resumed.
type handshakes struct {
	repetition
	address string
	// hosts is how many names they ask for, one after the other.
	hosts int
}

// count makes the handshakes, and counts those that fail, or show the certificate of another host, with the rest.
func (h handshakes) count(ctx context.Context) *tally {
	return h.repetition.count(ctx, func(turn int) error {
		_, err := handshake(h.address, hostName(turn%h.hosts+1))
		return err
	})
}

// handshakeTime is how long one may take. Only a failure takes so long.
const handshakeTime = 10 * time.Second

// handshake makes a connection, and returns the serial number of the certificate that it is shown. The server closes
// the connection first: otherwise this machine would run out of ports.
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
		ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519},
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
