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

// Ports from firstPort to lastPort are those that the DNS server may have. Linux gives higher ones to connections: one
// that nobody listens on by UDP may still not be had for TCP.
const (
	firstPort = 10240
	lastPort  = 32767
)

// startDNS starts a server that finds every name at 127.0.0.1, and waits until it does. It listens by UDP and by TCP,
// and says in its log only where it cannot.
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

// answers asks a DNS server until it answers, or has had time enough for that.
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
