package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// clients are some that speak one version of HTTP, and do so until they are told to stop.
type clients struct {
	name string
	// ask works until ctx ends. A request that is under way then is still answered.
	ask func(ctx context.Context) *tally
	// tally is what came of it.
	tally *tally
}

// endless is longer than what clients wait for.
const endless = 10 * patience

// repeated are a number of clients that each do the same thing again and again. What they do has a context that does
// not end with them.
func repeated(name string, number int, do func(ctx context.Context, client int) error) *clients {
	r := repetition{clients: number, duration: endless, tolerant: true}
	return &clients{name: name, ask: func(ctx context.Context) *tally {
		return r.count(ctx, func(turn int) error { return do(context.WithoutCancel(ctx), turn%number) })
	}}
}

// keptClients send one request after the other on connections that are never to end.
func (c *contestant) keptClients(name string, number int, secure bool) *clients {
	l := load{
		address: c.addressOf(secure), secure: secure, hosts: []string{hostOf(secure)}, body: answerBody,
		connections: number, duration: endless, tolerant: true,
	}
	return &clients{name: name, ask: l.count}
}

func (c *contestant) addressOf(secure bool) string {
	if secure {
		return c.https
	}
	return c.http
}

func hostOf(secure bool) string {
	if secure {
		return hostName(secureHost)
	}
	return hostName(plainHost)
}

// newClients make a connection for each request. The server closes it: otherwise this machine would run out of ports.
func (c *contestant) newClients(name string, number int, secure bool) *clients {
	l := load{address: c.addressOf(secure), secure: secure, body: answerBody, header: "Connection: close"}
	return repeated(name, number, func(ctx context.Context, _ int) error {
		connection, err := l.open(ctx, hostOf(secure))
		if err != nil {
			return err
		}
		defer connection.Close()
		if _, err := io.Copy(io.Discard, connection); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
}

// open makes a connection, and has one request answered on it.
func (l load) open(ctx context.Context, host string) (net.Conn, error) {
	connection, err := l.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	err = connection.SetDeadline(time.Now().Add(lateness))
	if err == nil {
		_, err = connection.Write(l.request(host))
	}
	if err == nil {
		err = readAnswer(bufio.NewReader(connection), l.body)
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// clientTLS is how clients look at the certificate of the secure host.
func clientTLS(protocols ...string) *tls.Config {
	return &tls.Config{ServerName: hostName(secureHost), InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		NextProtos: protocols}
}

// twoClients have a connection of HTTP/2 each, which is never to end.
func (c *contestant) twoClients(number int) *clients {
	all := make([]*http.Client, number)
	for i := range all {
		all[i] = c.twoClient()
	}
	return repeated("HTTP/2, kept", number,
		func(ctx context.Context, client int) error { return askBy(ctx, all[client], "/") })
}

// twoClient makes one connection, and no other.
func (c *contestant) twoClient() *http.Client {
	var dialed atomic.Bool
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, errors.New("the connection of HTTP/2 has ended")
		}
		return new(net.Dialer).DialContext(ctx, network, c.https)
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, TLSClientConfig: clientTLS("h2"),
		ForceAttemptHTTP2: true}}
}

// threeClients speak HTTP/3. They make another connection when they are asked to.
func (c *contestant) threeClients(number int) *clients {
	all := make([]*http.Client, number)
	for i := range all {
		all[i] = c.threeClient()
	}
	return repeated("HTTP/3", number, func(ctx context.Context, client int) error {
		return askUntilTaken(ctx,
			all[client])
	})
}

func (c *contestant) threeClient() *http.Client {
	dial := func(ctx context.Context, _ string, t *tls.Config, q *quic.Config) (*quic.Conn, error) {
		return quic.DialAddrEarly(ctx, c.https, t, q)
	}
	return &http.Client{Transport: &http3.Transport{TLSClientConfig: clientTLS("h3"), Dial: dial}}
}

// askBy asks the secure host.
func askBy(ctx context.Context, client *http.Client, path string) error {
	ctx, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+hostName(secureHost)+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || string(body) != answerBody) {
		err = fmt.Errorf("the answer is %s with %d bytes, not the backend's", response.Status, len(body))
	}
	return errors.Join(err, response.Body.Close())
}

// askUntilTaken asks again while the server says that it has not begun to work on the request, and wants another
// connection. The client of quic-go, other than browsers, leaves that to who uses it.
func askUntilTaken(ctx context.Context, client *http.Client) error {
	for {
		var why *http3.Error
		err := askBy(ctx, client, "/")
		switch {
		case errors.As(err, &why) && (why.ErrorCode == http3.ErrCodeRequestRejected ||
			why.ErrorCode == http3.ErrCodeNoError && !why.Remote):
			// The second one is that of the client itself: it closes a connection that it is asked to leave, even if it
			// has just begun a request.
		default:
			return err
		}
	}
}

// webSockets are connections that stay open, and on which bytes go both ways. One that ends is made anew, and counted.
func (c *contestant) webSockets(number int) *clients {
	all := make([]net.Conn, number)
	return repeated("WebSockets", number, func(ctx context.Context, client int) error {
		err := c.exchangeOn(ctx, &all[client])
		if err != nil && all[client] != nil {
			err = errors.Join(err, all[client].Close())
			all[client] = nil
		}
		return err
	})
}

// webSocketPause is the time between two exchanges on a WebSocket.
const webSocketPause = 20 * time.Millisecond

// exchangeOn sends a message on a connection, and waits until it comes back.
func (c *contestant) exchangeOn(ctx context.Context, connection *net.Conn) error {
	if *connection == nil {
		var err error
		if *connection, err = c.upgraded(ctx); err != nil {
			return err
		}
	}
	const message = "a message of a WebSocket"
	if err := (*connection).SetDeadline(time.Now().Add(lateness)); err != nil {
		return err
	}
	if _, err := io.WriteString(*connection, message); err != nil {
		return err
	}
	got := make([]byte, len(message))
	if _, err := io.ReadFull(*connection, got); err != nil {
		return err
	}
	if string(got) != message {
		return fmt.Errorf("%q came back, not what was sent", got)
	}
	wait(ctx, time.Now().Add(webSocketPause))
	return nil
}

// upgraded makes a connection that is a WebSocket from then on.
func (c *contestant) upgraded(ctx context.Context) (net.Conn, error) {
	connection, err := load{address: c.http}.dial(ctx, "")
	if err != nil {
		return nil, err
	}
	err = connection.SetDeadline(time.Now().Add(lateness))
	if err == nil {
		_, err = fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", hostName(plainHost))
	}
	if err == nil {
		err = readSwitching(connection)
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}

// readSwitching reads the head of the answer. The WebSocket is silent at first, so nothing behind the head is read with
// it.
func readSwitching(connection net.Conn) error {
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the answer is %s, not that of a WebSocket", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
