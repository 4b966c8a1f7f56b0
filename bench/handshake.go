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

// handshakes is a number of clients that open one TLS connection after the other. They use TLS 1.3 and do not resume
// sessions.
type handshakes struct {
	repetition
	address string
	// hosts is the number of server names that they use, one after the other.
	hosts int
}

// count performs the handshakes. It also counts failures, and handshakes in which the server presents the certificate
// of another host.
func (h handshakes) count(ctx context.Context) *tally {
	return h.repetition.count(ctx, func(turn int) error {
		_, err := handshake(h.address, hostName(turn%h.hosts+1))
		return err
	})
}

// handshakeTime is the time limit of a handshake. Only a failure takes that long.
const handshakeTime = 10 * time.Second

// handshake opens a connection, and returns the serial number of the server's certificate. The server closes the
// connection first. Otherwise this machine would run out of ports.
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
		return 0, fmt.Errorf("%s gets the certificate of %v", host, leaf.Subject)
	}
	if err := conn.CloseWrite(); err != nil {
		return 0, fmt.Errorf("%s: %w", host, err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) {
		return 0, fmt.Errorf("%s: %w", host, err)
	}
	return leaf.SerialNumber.Int64(), nil
}
