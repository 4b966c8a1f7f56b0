package l4app

import (
	"errors"
	"io"
	"net"
	"sync"

	"github.com/mholt/caddy-l4/layer4"
)

// datagrams hold one datagram each.
var datagrams = sync.Pool{New: func() any {
	buffer := make([]byte, datagramSize)
	return &buffer
}}

// relayDatagrams passes datagrams both ways, each as it is, until the client is idle or the backend refuses one.
func relayDatagrams(cx *layer4.Connection, backend net.Conn) error {
	var answers sync.WaitGroup
	answers.Go(func() {
		// The read of the client ends with it.
		defer cx.Close()
		copyDatagrams(cx, backend)
	})
	defer answers.Wait()
	defer backend.Close()
	next, free := source(cx)
	defer free()
	for {
		data, err := next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if _, err := backend.Write(data); err != nil {
			return err
		}
	}
}

// source reads the datagrams of a client. They are taken as they are queued, without a buffer, unless something stands
// in between.
func source(cx *layer4.Connection) (next func() ([]byte, error), free func()) {
	if c, ok := cx.Conn.(*client); ok && len(cx.MatchingBytes()) == 0 {
		return c.next, func() {}
	}
	buffer := datagrams.Get().(*[]byte)
	next = func() ([]byte, error) {
		n, err := cx.Read(*buffer)
		return (*buffer)[:n], err
	}
	return next, func() { datagrams.Put(buffer) }
}

// copyDatagrams ends with an error of the backend, be it only that its socket was closed.
func copyDatagrams(to io.Writer, backend io.Reader) {
	buffer := datagrams.Get().(*[]byte)
	defer datagrams.Put(buffer)
	for {
		n, err := backend.Read(*buffer)
		if err != nil {
			return
		}
		if _, err := to.Write((*buffer)[:n]); err != nil {
			return
		}
	}
}
