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

// clients is a group of clients that use one version of HTTP until they are stopped.
type clients struct {
	name string
	// ask sends requests until ctx ends. A request that is in progress at that time is completed.
	ask func(ctx context.Context) *tally
	// tally is the result of ask.
	tally *tally
}

// endless is a duration that is longer than any measurement.
const endless = 10 * patience

// repeated returns a number of clients that call do repeatedly. The context of do does not end when the clients are
// stopped.
func repeated(name string, number int, do func(ctx context.Context, client int) error) *clients {
	r := repetition{clients: number, duration: endless, tolerant: true}
	return &clients{name: name, ask: func(ctx context.Context) *tally {
		return r.count(ctx, func(turn int) error { return do(context.WithoutCancel(ctx), turn%number) })
	}}
}

// keptClients returns clients that send one request after the other on connections that must stay open.
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

// newClients returns clients that open a connection for each request. The server closes the connection. Otherwise this
// machine would run out of ports.
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

// open opens a connection and sends one request on it.
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

// clientTLS returns the TLS configuration of clients for the secure host.
func clientTLS(protocols ...string) *tls.Config {
	return &tls.Config{ServerName: hostName(secureHost), InsecureSkipVerify: true, MinVersion: tls.VersionTLS13,
		NextProtos: protocols}
}

// twoClients returns clients with one HTTP/2 connection each. The connection must stay open.
func (c *contestant) twoClients(number int) *clients {
	all := make([]*http.Client, number)
	for i := range all {
		all[i] = c.twoClient()
	}
	return repeated("HTTP/2, kept", number,
		func(ctx context.Context, client int) error { return askBy(ctx, all[client], "/") })
}

// twoClient returns a client that opens only one connection.
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

// threeClients returns HTTP/3 clients. They open a new connection if the server closes the old one.
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

// askBy sends a request to the secure host and checks the response.
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
		err = fmt.Errorf("the response is %s with %d bytes, not the backend's", response.Status, len(body))
	}
	return errors.Join(err, response.Body.Close())
}

// askUntilTaken sends a request again if the server has rejected it before processing it and requires a new connection.
// Browsers do this, but quic-go's client leaves it to its caller.
func askUntilTaken(ctx context.Context, client *http.Client) error {
	for {
		var why *http3.Error
		err := askBy(ctx, client, "/")
		switch {
		case errors.As(err, &why) && (why.ErrorCode == http3.ErrCodeRequestRejected ||
			why.ErrorCode == http3.ErrCodeNoError && !why.Remote):
			// The second error comes from the client itself. It closes a connection after the server's GOAWAY, even if
			// it has just started a request.
		default:
			return err
		}
	}
}

// webSockets returns clients that keep a WebSocket open and exchange messages on it. If a connection ends, it is
// counted as a failure and opened again.
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

// webSocketPause is the time between two messages on a WebSocket.
const webSocketPause = 20 * time.Millisecond

// exchangeOn sends a message and waits until it comes back.
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

// upgraded opens a connection and upgrades it to a WebSocket.
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

// readSwitching reads the response head. It may read ahead, because the server sends nothing after the head.
func readSwitching(connection net.Conn) error {
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		err = fmt.Errorf("the response is %s, not the response to a WebSocket handshake", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}
