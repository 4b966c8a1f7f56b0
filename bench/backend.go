package main

import (
	"bufio"
	"fmt"
	"net"
)

// answerBody is short, so that the proxy's own cost shows.
const answerBody = "ok\n"

// answer is what the backend says to every request.
var answer = []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n" + answerBody)

// backend is an HTTP/1.1 server that costs as little as possible: it knows requests without a body only, which is all
// that the load generator sends.
type backend struct {
	listener net.Listener
	address  string
}

func startBackend() (*backend, error) {
	// On all addresses, so that each of 127.0.0.0/8 is an endpoint of its own.
	listener, err := net.Listen("tcp4", ":0")
	if err != nil {
		return nil, err
	}
	b := &backend{listener, fmt.Sprintf("127.0.0.1:%d", listener.Addr().(*net.TCPAddr).Port)}
	go b.accept()
	return b, nil
}

func (b *backend) stop() { b.listener.Close() }

func (b *backend) accept() {
	for {
		connection, err := b.listener.Accept()
		if err != nil {
			return
		}
		go serve(connection)
	}
}

// serve answers one connection until the client closes it.
func serve(connection net.Conn) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 {
			continue
		}
		// An empty line ends the head of a request.
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
}
