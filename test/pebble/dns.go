package main

import (
	"context"
	"errors"
	"fmt"
	"log" //nolint:depguard // Pebble takes no other
	"math/rand/v2"
	"net"
	"time"

	"github.com/letsencrypt/challtestsrv"
)

// The DNS server uses a port between firstPort and lastPort. Linux uses higher ports for outgoing connections, so a
// port that is free for UDP may be in use for TCP.
const (
	firstPort = 10240
	lastPort  = 32767
)

// startDNS starts a server that resolves every name to 127.0.0.1, and waits until it responds. It listens on UDP and
// TCP, and only logs if it cannot listen.
func startDNS(ctx context.Context, logger *log.Logger) (address string, err error) {
	for range 10 {
		address = fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort+1))
		server, err := challtestsrv.New(challtestsrv.Config{Log: logger, DNSAddrs: []string{address}})
		if err != nil {
			return "", fmt.Errorf("starting the DNS server: %w", err)
		}
		server.SetDefaultDNSIPv6("")
		server.Run()
		if err = errors.Join(answers(ctx, "udp", address), answers(ctx, "tcp", address)); err == nil {
			return address, nil
		}
		logger.Print(err)
		server.Shutdown()
	}
	return "", errors.New("the DNS server does not answer at any port")
}

// answers sends queries to a DNS server until it responds. It returns an error if there is no response within the time
// limit.
func answers(ctx context.Context, network, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := resolver.LookupNetIP(ctx, "ip4", "ready.test.")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("asking the DNS server at %s by %s: %w", address, network, err)
		case <-tick.C:
		}
	}
}
